package bemalloc

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestBudget: what one pool holds free another may use; what is in use it may not, and
// the error names the budget. All of it comes back.
func TestBudget(t *testing.T) {
	const most = 3 * blockSize
	dev, budget := newRegistrar(t), NewBudget(most)
	a, b := newPool(t, Config{Registrar: dev, Budget: budget}), newPool(t, Config{Registrar: dev, Budget: budget})
	for range 3 { // to and fro
		x := must(t)(a.Alloc(2 * blockSize))
		y := must(t)(b.Alloc(blockSize))
		if budget.Used() != most {
			t.Errorf("%d bytes of %d are used", budget.Used(), most)
		}
		free(t, a, x)
		z := must(t)(b.Alloc(2 * blockSize))
		var limit *LimitError
		if _, err := a.Alloc(100); !errors.As(err, &limit) || !errors.Is(err, ErrLimit) || limit.What != "bemalloc.Budget" || limit.Max != most || limit.Used != most {
			t.Errorf("beyond the budget: %v", err)
		}
		if _, err := a.AllocWait(context.Background(), 100); !errors.Is(err, ErrLimit) {
			t.Errorf("a wait that nobody could end: %v", err)
		}
		free(t, b, y)
		free(t, b, z)
		free(t, a, must(t)(a.Alloc(most)))
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	free(t, b, must(t)(b.Alloc(most)))
	if err := b.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes are used after the last close, %v", budget.Used(), err)
	}
}

// TestBudgetOfNoLimit only counts.
func TestBudgetOfNoLimit(t *testing.T) {
	budget := NewBudget(0)
	p := newPool(t, Config{Registrar: newRegistrar(t), Budget: budget})
	b := must(t)(p.Alloc(10 * blockSize))
	if budget.Used() != 10*blockSize {
		t.Errorf("%d bytes are used", budget.Used())
	}
	free(t, p, b)
}

// TestBudgetWithoutAddresses: a claim that finds no address space uses none of the
// budget.
func TestBudgetWithoutAddresses(t *testing.T) {
	budget := NewBudget(8 * blockSize)
	p := newPool(t, Config{Registrar: newRegistrar(t), Budget: budget, ReserveBytes: 2 * blockSize})
	a := must(t)(p.Alloc(blockSize))
	if _, err := p.Alloc(2 * blockSize); !errors.Is(err, ErrNoMemory) || budget.Used() != blockSize {
		t.Errorf("%v, %d bytes are used", err, budget.Used())
	}
	free(t, p, a)
}

// TestBudgetShared: pools that take from one another under load stay within the
// budget, and close while others reclaim.
func TestBudgetShared(t *testing.T) {
	const most, pools = 8 * blockSize, 4
	dev, budget := newRegistrar(t), NewBudget(most)
	var wg sync.WaitGroup
	for g := range pools {
		p := newPool(t, Config{Registrar: dev, Budget: budget})
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 0))
			for range 300 {
				b, err := p.Alloc(1 + rng.IntN(3*blockSize))
				if used := budget.Used(); used > most {
					t.Errorf("%d bytes of %d are used", used, most)
				}
				if err == nil {
					b[0] = 1
					free(t, p, b)
				} else if !errors.Is(err, ErrLimit) {
					t.Error(err)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if budget.Used() != 0 || dev.regions() != 0 {
		t.Errorf("%d bytes are used, %d regions left", budget.Used(), dev.regions())
	}
}
