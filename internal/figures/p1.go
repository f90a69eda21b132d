package main

import "fmt"

// The names of the candidates, which are also the names of their runners.
const (
	rawPipe    = "raw-pipe"
	minPipe    = "min-pipe"
	spawnPipe  = "spawn-pipe"
	minHTTP    = "min-http"
	ours       = "ours-stdio"
	oursModern = "ours-stdio-2026"
	ours2025   = "ours-http-2025"
	ours2026   = "ours-http-2026"
)

// measureP1 compares a tool call over stdio between tenon's client and server with a handwritten client and
// server over the same kind of pipe. The goal applies to the era whose requests have the same bytes as the
// floor's; the other era is for comparison.
func measureP1(s *session) error {
	raw := s.self(rawPipe)
	raw.single = true
	outcomes, err := s.contest(append([]candidate{s.self(minPipe), s.self(ours), s.self(oursModern), s.self(spawnPipe),
		raw}, s.rivalsOf("stdio")...))
	if err != nil {
		return err
	}
	floor, mine := outcomes[minPipe], outcomes[ours]
	s.add("P1.p50", "stdio tool call: p50 against min-pipe", "ratio", ratios(mine.p50, floor.p50))
	s.add("P1.rps64", "stdio tool call: calls/s with 64 callers against min-pipe", "ratio",
		ratios(mine.rps64, floor.rps64))
	s.add("P1.bytes", "stdio tool call: allocated by both ends together", "B", mine.bytes)
	s.add("P1.cpu", "stdio tool call: CPU of both ends against min-pipe", "ratio", ratios(mine.cpu, floor.cpu))
	modern := outcomes[oursModern]
	s.add("P1.2026.p50", "stdio tool call, 2026-07-28 with _meta in each request: p50 against min-pipe", "ratio",
		ratios(modern.p50, floor.p50))
	s.add("P1.2026.rps64", "the same: calls/s with 64 callers", "ratio", ratios(modern.rps64, floor.rps64))
	s.add("P1.2026.bytes", "the same: allocated by both ends together", "B", modern.bytes)
	spawn := outcomes[spawnPipe]
	s.add("P1.spawn.p50", "stdio tool call: p50 against a min-pipe whose server has a goroutine for each request",
		"ratio",
		ratios(mine.p50, spawn.p50))
	s.add("P1.spawn.rps64", "the same: calls/s with 64 callers", "ratio", ratios(mine.rps64, spawn.rps64))
	s.add("P1.ours.p50", "stdio tool call: p50", "µs", mine.p50)
	s.add("P1.floor.p50", "min-pipe: p50", "µs", floor.p50)
	s.add("P1.floor.rps64", "min-pipe: calls/s with 64 callers", "1/s", floor.rps64)
	s.add("P1.floor.bytes", "min-pipe: allocated by both ends together", "B", floor.bytes)
	s.add("P1.floor.raw", "the same bytes over a bare pipe: p50", "µs", outcomes[rawPipe].p50)
	s.addRivals("P1", "stdio", "min-pipe", outcomes, floor)
	return nil
}

// addRivals records the results of the rivals of a transport as ratios to the same floor.
func (s *session) addRivals(goal, transport, floorName string, outcomes map[string]*outcome, floor *outcome) {
	for _, c := range s.rivalsOf(transport) {
		o := outcomes[c.name]
		if o == nil || len(o.p50) < s.rounds {
			continue
		}
		id := goal + ".rival." + c.name
		s.add(id+".p50", fmt.Sprintf("%s: p50 against %s", c.name, floorName), "ratio", ratios(o.p50, floor.p50))
		s.add(id+".rps64", fmt.Sprintf("%s: calls/s with 64 callers against %s", c.name, floorName), "ratio",
			ratios(o.rps64, floor.rps64))
		s.add(id+".bytes", c.name+": allocated by both ends together", "B", o.bytes)
	}
}
