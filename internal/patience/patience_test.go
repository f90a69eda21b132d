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
			t.Fatal("the pauses were counted")
		}
		if time.Sleep(1001 * time.Millisecond); context.Cause(ctx) != context.DeadlineExceeded || !l.IsExpired() {
			t.Fatalf("after 10 s that count: %v", context.Cause(ctx))
		}
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, l := patience.WithTimeout(t.Context(), 0)
		l.Pause()()
		if time.Sleep(1000 * time.Hour); ctx.Err() != nil || l.IsExpired() {
			t.Fatal("it ended by itself")
		}
		if l.Stop(); ctx.Err() == nil || l.IsExpired() {
			t.Fatal("Stop does not end it, or as expired")
		}
	})
}
