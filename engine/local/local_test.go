package local

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
	"github.com/tenonhq/tenon/store/sqlite"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) func(enginetest.Setup) engine.Engine {
		path := filepath.Join(t.TempDir(), "tenon.db")
		return func(s enginetest.Setup) engine.Engine {
			// Each engine has its own store, like a separate process.
			st, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(Config{Store: st, NewCore: enginetest.NewCore, Do: s.Do, Clock: s.Clock, Parallel: s.Parallel,
				Grace: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = e.Close() // reports errors that tests cause on purpose
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
			return e
		}
	})
}

func TestMain(m *testing.M) {
	linearMain()
	childMain()
	goleak.VerifyTestMain(m)
}
