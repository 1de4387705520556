package mlx5

import (
	"errors"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

func TestSettingsFrom(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want Settings
		err  string // part of the error; "": none
	}{
		{nil, Settings{}, ""},
		{map[string]string{"MLX5_CQE_SIZE": "64"}, Settings{EntrySize: 64}, ""},
		{map[string]string{"MLX5_CQE_SIZE": "128", "MLX5_SCATTER_TO_CQE": "1"}, Settings{EntrySize: 128, Inside: true}, ""},
		{map[string]string{"MLX5_SCATTER_TO_CQE": "0", "MLX5_POST_SEND_PREFER_BF": "1", "MLX5_SHUT_UP_BF": "0"}, Settings{}, ""},
		{map[string]string{"MLX5_POST_SEND_PREFER_BF": "0"}, Settings{BlueFlame: BlueFlameInline}, ""},
		{map[string]string{"MLX5_POST_SEND_PREFER_BF": "0", "MLX5_SHUT_UP_BF": "1"}, Settings{BlueFlame: BlueFlameNever}, ""},
		{map[string]string{"MLX_QP_ALLOC_TYPE": "HUGE", "MLX_CQ_ALLOC_TYPE": "PREFER_HUGE"}, Settings{QueuePages: Huge, CompletionPages: PreferHuge}, ""},
		{map[string]string{"MLX5_CQE_SIZE": "96"}, Settings{}, "MLX5_CQE_SIZE=96, must be 64 or 128"},
		{map[string]string{"MLX5_CQE_SIZE": "x"}, Settings{}, "MLX5_CQE_SIZE=x"},
		{map[string]string{"MLX_CQ_ALLOC_TYPE": "CONTIG"}, Settings{}, "MLX_CQ_ALLOC_TYPE=CONTIG"},
	} {
		s, err := SettingsFrom(func(name string) string { return tt.env[name] })
		if tt.err != "" {
			if !errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v: error %v, want %q", tt.env, err, tt.err)
			}
			continue
		}
		if err != nil || s != tt.want {
			t.Errorf("%v: %+v, %v, want %+v", tt.env, s, err, tt.want)
		}
	}
}
