package main

// measureP2 compares a tool call over Streamable HTTP between tenon's client and server, in both eras of the
// protocol, with a handwritten client and server over net/http.
func measureP2(s *session) error {
	outcomes, err := s.contest(append([]candidate{s.self(minHTTP), s.self(ours2025), s.self(ours2026)},
		s.rivalsOf("http")...))
	if err != nil {
		return err
	}
	floor := outcomes[minHTTP]
	for _, era := range []struct{ id, candidate, name string }{
		{"P2.2025", ours2025, "HTTP tool call, 2025-11-25"},
		{"P2.2026", ours2026, "HTTP tool call, 2026-07-28"},
	} {
		mine := outcomes[era.candidate]
		s.add(era.id, era.name+": p50 against min-http", "ratio", ratios(mine.p50, floor.p50))
		s.add(era.id+".rps64", era.name+": calls/s with 64 callers against min-http", "ratio",
			ratios(mine.rps64, floor.rps64))
		s.add(era.id+".bytes", era.name+": allocated by both ends together", "B", mine.bytes)
		s.add(era.id+".cpu", era.name+": CPU of both ends against min-http", "ratio", ratios(mine.cpu, floor.cpu))
	}
	s.add("P2.floor.p50", "min-http: p50", "µs", floor.p50)
	s.add("P2.floor.rps64", "min-http: calls/s with 64 callers", "1/s", floor.rps64)
	s.add("P2.floor.bytes", "min-http: allocated by both ends together", "B", floor.bytes)
	s.addRivals("P2", "http", "min-http", outcomes, floor)
	return nil
}
