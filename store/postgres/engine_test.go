package postgres

import (
	"testing"
	"time"

	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/engine/local"
)

// TestEngine runs the suite of engines on replicas: each engine has a separate store.
func TestEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) func(enginetest.Setup) engine.Engine {
		c := place(t)
		return func(s enginetest.Setup) engine.Engine {
			st, err := Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			e, err := local.New(local.Config{Store: st, NewCore: enginetest.NewCore, Do: s.Do, Clock: s.Clock,
				Parallel: s.Parallel, Grace: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = e.Close() // returns the errors that tests cause on purpose
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
			return e
		}
	})
}
