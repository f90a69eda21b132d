package main

// measureP5 measures one agent turn outside model and tool.
func measureP5(s *session) error {
	return measureGrowth(s)
}
