package main

// measureTemporal measures what runs cost in the history of Temporal. Each round is a run of TestHistory of
// engine/temporal, which starts its server.
func measureTemporal(s *session) error {
	all, err := databaseRounds(s, "temporal.sh", []string{"-run", "^TestHistory$"})
	if err != nil {
		return err
	}
	for _, f := range []struct{ id, name, unit string }{
		{"events", "Temporal: events in the history of a run with a decided call", ""},
		{"activities", "Temporal: activities of a run with a decided call", ""},
		{"history", "Temporal: history of a run of 1,000 turns", "KB"},
	} {
		s.add("TEMPORAL."+f.id, f.name, f.unit, all[f.id])
	}
	return nil
}
