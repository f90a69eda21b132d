package servers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
)

// TestListExpires lists the tools of a server that says how long its list is valid. After this time, the tools are
// listed again. If that fails, the old list stays in use for a while.
func TestListExpires(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fresh time.Duration
		want  []int // listings after 0 s, 0.5 s, 1.5 s, 70 s (which fails), 80 s, 110 s
	}{
		{"RP-11_without_a_hint", 0, []int{1, 1, 1, 1, 1, 1}},
		{"RP-11_a_minute", time.Minute, []int{1, 1, 1, 2, 2, 3}},
		{"RP-11_too_short_a_time", time.Millisecond, []int{1, 1, 2, 3, 3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, fails := 0, false
				f := newFake()
				f.fresh = tt.fresh
				f.tools = func(context.Context) ([]tenon.Tool, error) {
					n++
					if fails {
						return nil, errors.New("busy")
					}
					return []tenon.Tool{{Remote: fmt.Sprint("tool", n)}}, nil
				}
				s := faked(Config{}, func(context.Context) (connection, error) { return f, nil })
				begun := time.Now()
				for i, at := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 70 * time.Second, 80 * time.Second,
					110 * time.Second} {
					time.Sleep(time.Until(begun.Add(at)))
					fails = at == 70*time.Second
					tools, err := s.List(t.Context())
					if err != nil || len(tools) != 1 || n != tt.want[i] {
						t.Errorf("after %s: %d listings, want %d; %v, %v", at, n, tt.want[i], tools, err)
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
