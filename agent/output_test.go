package agent

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestCalibrate checks how the model's token counts change the estimate: in steps, within bounds, and not at all if a
// count gives no information.
func TestCalibrate(t *testing.T) {
	s := New(Spec{Question: "q", MaxTurns: 5}, nil)
	text := strings.Repeat("x", 4000)
	s.add(tenon.UserMessage(text))
	s.calibrate(900, len(s.messages))
	if s.perToken != 0 {
		t.Errorf("tools and instructions are counted as text: %d", s.perToken)
	}
	s.known, s.knownAt = 900, len(s.messages)
	s.add(tenon.UserMessage(text))
	if got := s.tokensNow(); got != 1900 {
		t.Errorf("%d before, want 1900", got)
	}
	s.calibrate(900+2000, len(s.messages)) // two bytes a token
	if s.perToken != 3400 {
		t.Errorf("%d", s.perToken)
	}
	for range 50 {
		s.calibrate(900+2000, len(s.messages))
	}
	if got := s.tokensNow(); got < 2850 || got > 2950 {
		t.Errorf("%d after, want about 2900", got)
	}
	for range 50 {
		s.calibrate(900+100_000, len(s.messages))
	}
	if s.perToken < leastPerToken-10 || s.perToken > leastPerToken+10 {
		t.Errorf("%d is out of bounds", s.perToken)
	}
	was := s.perToken
	s.calibrate(910, len(s.messages))
	s.calibrate(-5, len(s.messages))
	s.calibrate(2000, 0)
	if s.perToken != was {
		t.Errorf("%d", s.perToken)
	}
	if child := New(Spec{Question: "and?"}, s); child.perToken != was {
		t.Error("the next run of the session begins anew")
	}
}
