package agent

import "github.com/tenonhq/tenon"

// maxBadCalls is how often in a row a model may correct a tool call that could not be read.
const maxBadCalls = 3

// applyBadCall asks the model to correct a tool call that could not be read. why is the provider's stop reason, or an
// explanation. After maxBadCalls corrections in a row, [State.Next] ends the run. It is decided there because journals
// of older versions have more corrections.
func (s *State) applyBadCall(why string) {
	s.badCalls++
	s.badCall = why
	s.add(tenon.UserMessage("Your last tool call could not be read (" + why +
		"). Call the tool again with valid arguments, or answer without it."))
	s.turn++
}

func (s *State) badCallError() *tenon.Error {
	return tenon.Errorf(tenon.CodeModel, "the model ended %d answers in a row with a tool call that cannot be read "+
		"(%s); use another model, or let this one call tools as text with tool_mode: react", s.badCalls, s.badCall)
}
