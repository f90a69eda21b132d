package main

import "errors"

// measureP5 measures one agent turn, excluding model and tool: in memory, with the journal, and late in a
// conversation.
func measureP5(s *session) error {
	return errors.Join(measureMemory(s), measureJournal(s), measureGrowth(s))
}
