package agent

import "github.com/tenonhq/tenon"

// Texts of calls that the core settles without an event. Package view shows the same texts to persons.
const (
	LimitText     = "not run: the limit of the run was reached"
	CallLimitText = "not run: the run's limit of tool calls is reached"
)

// CutOffText returns the result of a call in an answer that was cut off. stop is the reason; see [IsWhole].
func CutOffText(stop tenon.StopReason) string {
	return "not run: the answer was cut off (" + string(stop) + ")"
}

// IsWhole reports whether an answer with this reason is complete, so that its calls run.
func IsWhole(stop tenon.StopReason) bool { return stop == tenon.StopToolUse || stop == tenon.StopEnd }

// TooManyText returns the result of a call beyond the limit of its tool. of is run or session.
func TooManyText(name string, most int, of string) string { return tooMany(name, most, of).Text() }

// EndedText returns the result of a call that had not ended when its run did. begun says that the call was sent,
// asked that it waited for input. err is the error of the run, or nil if it has none.
func EndedText(begun, asked bool, err *tenon.Error) string {
	switch {
	case asked:
		return "interrupted: the run was stopped while this call waited for input"
	case begun: // a call that may have taken effect has an event that says so
		return "interrupted: the run was stopped while this call was under way; it is safe to repeat"
	case err != nil && err.Code == tenon.CodeLimit:
		return "not run: " + err.Message
	}
	return "not run: the run was stopped before"
}

// Unended returns the indexes of the turn's calls that have no result yet. If the run has ended, it returns none,
// because the texts of its results are then final.
func (s *State) Unended() []int {
	var places []int
	for i, c := range s.calls {
		if c.result == nil && s.ended == nil {
			places = append(places, i)
		}
	}
	return places
}

// ending returns the result text for a call of this turn that has no result.
func (s *State) ending(c *call) string {
	begun, asked := c.attempt > 0, c.status == asking || c.status == delegated
	stop, _ := s.limit()
	if !begun && !asked && (s.final != "" || s.ended == nil && stop != "") {
		return LimitText
	}
	var err *tenon.Error
	if s.ended != nil {
		err = s.ended.Error
	}
	return EndedText(begun, asked, err)
}
