package mlx5

type goldenCall struct{}
