package patience_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon/internal/patience"
)

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, l := patience.WithTimeout(t.Context(), 10*time.Second)
		defer l.Stop()
		time.Sleep(4 * time.Second)
		first := l.Pause()
		second := l.Pause()
		time.Sleep(time.Hour)
		first()
		if time.Sleep(time.Hour); !l.IsPaused() || ctx.Err() != nil {
			t.Fatalf("one of two pauses has ended: paused %v, %v", l.IsPaused(), ctx.Err())
		}
		second()
		if time.Sleep(5 * time.Second); ctx.Err() != nil {
			t.Fatal("the pauses counted as time")
		}
		if time.Sleep(1001 * time.Millisecond); context.Cause(ctx) != context.DeadlineExceeded || !l.IsExpired() {
			t.Fatalf("after 10 s without pauses: %v", context.Cause(ctx))
		}
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, l := patience.WithTimeout(t.Context(), 0)
		l.Pause()()
		if time.Sleep(1000 * time.Hour); ctx.Err() != nil || l.IsExpired() {
			t.Fatal("it ended without Stop")
		}
		if l.Stop(); ctx.Err() == nil || l.IsExpired() {
			t.Fatal("Stop does not end it, or it counts as expired")
		}
	})
}

func TestRP6_Progress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, all := patience.WithProgress(t.Context(), 0, 10*time.Second)
		defer all.Stop()
		ctx, part := patience.WithTimeout(outer, 3*time.Second)
		defer part.Stop()
		for range 4 { // 8 s, and an hour that does not count
			time.Sleep(2 * time.Second)
			part.Pause()()
			all.Progress()
		}
		resume := part.Pause()
		time.Sleep(time.Hour)
		all.Progress()
		resume()
		if ctx.Err() != nil || part.Length() != 10*time.Second {
			t.Fatalf("after 8 s with progress: %v, length %s", ctx.Err(), part.Length())
		}
		if time.Sleep(1900 * time.Millisecond); ctx.Err() != nil {
			t.Fatal("the last report did not extend the time to 10 s")
		}
		all.Progress()
		if time.Sleep(200 * time.Millisecond); !part.IsExpired() || outer.Err() != nil {
			t.Fatalf("after 10.1 s: expired %v, outer %v", part.IsExpired(), outer.Err())
		}
		all.Progress() // changes nothing any more
	})
}

func TestRP6_ProgressWithoutExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, l := patience.WithProgress(t.Context(), 3*time.Second, 3*time.Second)
		defer l.Stop()
		time.Sleep(2 * time.Second)
		l.Progress()
		if time.Sleep(1100 * time.Millisecond); ctx.Err() == nil || l.Length() != 3*time.Second {
			t.Fatalf("after 3.1 s: %v, length %s", ctx.Err(), l.Length())
		}
	})
}
