package gateway

import (
	"testing"
	"testing/synctest"
)

// TestEqualCallsAfterApproval checks that calls that wait in their turn while another one fetches the result of a
// parked call get the same result, and that a later call is a new one.
func TestEqualCallsAfterApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parked{}
		p.add("key", "run", true)
		first, err := p.turn(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 9)
		for range cap(got) {
			go func() {
				mine, err := p.turn(t.Context(), "key")
				if err != nil {
					t.Error(err)
					return
				}
				got <- p.join("key", mine)
				mine.decided()
			}()
		}
		synctest.Wait() // all of them wait
		if run := p.join("key", first); run != "run" || !p.done("key", run) {
			t.Errorf("GW-27: the first call joined %q", run)
		}
		first.decided()
		for range cap(got) {
			if run := <-got; run != "run" {
				t.Errorf("GW-27_together: a call joined %q", run)
			}
		}
		synctest.Wait()
		later, err := p.turn(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		if run := p.join("key", later); run != "" {
			t.Errorf("GW-27_later: a later call joined %q", run)
		}
		later.decided()
		if len(p.turns) != 0 {
			t.Errorf("GW-27: %d turns are left", len(p.turns))
		}
	})
}
