package host

import (
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// TestLostRunRest checks how long a run counts as idle, whatever the clock of its last process showed.
func TestLostRunRest(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		updated, seen time.Time
		want          time.Duration
	}{
		"clocks agree":        {now.Add(-time.Minute), now.Add(-time.Second), time.Minute},
		"the other is ahead":  {now.Add(time.Hour), now.Add(-2 * time.Second), 2 * time.Second},
		"the other is behind": {now.Add(-time.Hour), now, time.Hour},
		"just written":        {now, now, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lostRun{seen: tt.seen}
			if got := l.rest(tenon.Run{Updated: tt.updated}, now); got != tt.want {
				t.Errorf("at rest for %v, want %v", got, tt.want)
			}
		})
	}
}
