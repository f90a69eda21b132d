package host

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

// The values of [StatsQuery.By].
const (
	StatsTools      = "tools"
	StatsServers    = "servers"
	StatsModels     = "models"
	StatsAgents     = "agents"
	StatsSessions   = "sessions"
	StatsPrincipals = "principals"
	StatsDays       = "days" // UTC
)

// StatsBy returns the valid values of [StatsQuery.By].
func StatsBy() []string {
	return []string{StatsTools, StatsServers, StatsModels, StatsAgents, StatsSessions, StatsPrincipals, StatsDays}
}

// The values of [StatsQuery.Per].
const (
	PerHour = "hour"
	PerDay  = "day" // UTC
)

// StatsQuery selects what Stats counts.
type StatsQuery struct {
	By        string          // one of [StatsBy]
	Per       string          // [PerHour] or [PerDay] in which runs began, to count them separately; if empty, in total
	Since     time.Time       // only runs that began at this time or later; zero: all
	Principal tenon.Principal // only runs of this principal; if empty, of all
	// Behind, if set, receives the number of runs that the counts leave out: counting them would take too long now, or
	// their journals cannot be read. It is not called if there are none.
	Behind func(runs int)
}

// Stat has the counts of one tool, server, model, agent, session, principal or day. Calls counts tool calls or, by
// model, model calls. Latencies are of the same calls. If both kinds of calls are counted, latencies are of whole
// runs.
type Stat struct {
	Name string `json:"name"` // a tool has the name that the model last saw
	// At is the beginning of the hour or day in which the counted runs began; zero if the query has no Per.
	At time.Time `json:"at,omitzero"`
	// Server is the server's name. If servers of different identities have the same name, the layer of the entry or a
	// part of the target's digest follows.
	Server  string `json:"server,omitempty"`
	Remote  string `json:"remote_name,omitempty"`
	Title   string `json:"title,omitempty"` // of a session
	Runs    int    `json:"runs,omitempty"`
	Models  int    `json:"model_calls,omitempty"`
	Calls   int    `json:"calls"`
	Errors  int    `json:"errors"` // failed calls
	Denied  int    `json:"denied"`
	Cached  int    `json:"cached"` // answered with the result of an equal call
	Unknown int    `json:"unknown"`
	P50     int64  `json:"p50_ms"`
	P95     int64  `json:"p95_ms"`
	P99     int64  `json:"p99_ms"`
	Bytes   int64  `json:"bytes"` // of results
	Input   int    `json:"input_tokens"`
	Output  int    `json:"output_tokens"`
	// Unmetered counts the model calls whose provider reported no tokens, which Input and Output lack.
	Unmetered int `json:"unmetered_calls,omitempty"`
	// CacheRead and CacheWrite count the input tokens that were read from and written to the cache of a provider.
	CacheRead  int `json:"cache_read_tokens"`
	CacheWrite int `json:"cache_write_tokens"`
	// Saved is what the cache saved in US dollars, as far as prices are known, and with today's prices. It is negative
	// if writing to the cache cost more than reading from it saved.
	Saved tenon.USD `json:"saved"`
	// Cost is the cost of model calls and tools in US dollars, as far as prices are known.
	Cost tenon.USD `json:"cost"`

	took []int64
}

// Stats returns the counts of what the journals record, the most used objects first. Days, and counts for each hour
// or day, are in the order of time. It reads the summaries of runs, and the journals of runs that have none yet.
// Errors: invalid (By, Per), limit (see [ErrBusy]), store.
func (h *Host) Stats(ctx context.Context, q StatsQuery) ([]Stat, error) {
	if !slices.Contains(StatsBy(), q.By) {
		return nil, tenon.Errorf(tenon.CodeInvalid, "nothing is counted by '%s'; values: %s", q.By,
			strings.Join(StatsBy(), ", "))
	}
	if q.Per != "" && q.Per != PerHour && q.Per != PerDay {
		return nil, tenon.Errorf(tenon.CodeInvalid, "nothing is counted per '%s'; values: %s, %s", q.Per, PerHour,
			PerDay)
	}
	leave, err := h.heavy.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	fresh, left, err := h.newTallies(ctx)
	if err != nil {
		return nil, err
	}
	c := counter{by: q.By, per: q.Per, stats: map[statKey]*Stat{}, price: h.priceOnce(ctx)}
	count := func(t *view.Tally) {
		if t.Created.Before(q.Since) || q.Principal != "" && t.Principal != q.Principal {
			return
		}
		c.run(t)
	}
	skip := map[string]bool{}
	for _, f := range fresh {
		skip[f.run] = true
	}
	var r view.TallyReader
	err = h.eachTally(ctx, skip, func(data []byte) {
		t, err := r.Read(data)
		if err != nil {
			left++
			return
		}
		for ; len(fresh) > 0 && !fresh[0].tally.Created.Before(t.Created); fresh = fresh[1:] {
			count(&fresh[0].tally)
		}
		count(&t)
	})
	if err != nil {
		return nil, err
	}
	for i := range fresh {
		count(&fresh[i].tally)
	}
	if left > 0 && q.Behind != nil {
		q.Behind(left)
	}
	return c.list(), nil
}

// tallies are the encoded summaries of some runs, one after another.
type tallies struct {
	data []byte
	ends []int // of each summary in data
}

// maxTallies is the size of the data after which tallies are passed on.
const maxTallies = 64 << 10

// eachTally calls do with each stored summary, newest first, except for skipped runs. do runs in another goroutine,
// because reading 75,000 rows takes as long as counting them.
func (h *Host) eachTally(ctx context.Context, skip map[string]bool, do func(data []byte)) error {
	full, done := make(chan tallies, 2), make(chan struct{})
	go func() {
		defer close(done)
		for b := range full {
			from := 0
			for _, end := range b.ends {
				do(b.data[from:end])
				from = end
			}
		}
	}()
	var b tallies
	err := h.store.Tallies(ctx, func(t store.Tally) error {
		if skip[t.Run] {
			return nil
		}
		b.data = append(b.data, t.Data...)
		b.ends = append(b.ends, len(b.data))
		if len(b.data) >= maxTallies {
			full <- b
			b = tallies{data: make([]byte, 0, cap(b.data)), ends: make([]int, 0, cap(b.ends))}
		}
		return nil
	})
	full <- b
	close(full)
	<-done
	return err
}

// counter collects the counts for one query.
type counter struct {
	by    string
	per   string
	now   time.Time // beginning of the hour or day of the present run
	price func(name string) model.Price
	stats map[statKey]*Stat
}

// statKey identifies a counted object. A server is identified by its identity, under any name. Journals of earlier
// releases have only the name.
type statKey struct {
	name, identity, legacy, remote string
	at                             time.Time
}

// serverKey is the key of the server of a tool's calls.
func serverKey(t *view.ToolTally) statKey {
	if t.Identity == "" {
		return statKey{legacy: t.Server}
	}
	return statKey{identity: t.Identity}
}

func (c *counter) at(k statKey) *Stat {
	k.at = c.now
	s := c.stats[k]
	if s == nil {
		s = &Stat{Name: k.name, At: k.at, Remote: k.remote}
		c.stats[k] = s
	}
	return s
}

// run counts one run. Runs come newest first.
func (c *counter) run(t *view.Tally) {
	switch c.per {
	case PerHour:
		c.now = t.Created.UTC().Truncate(time.Hour)
	case PerDay:
		c.now = t.Created.UTC().Truncate(24 * time.Hour)
	}
	var whole *Stat
	switch c.by {
	case StatsAgents:
		if t.Agent != "" { // a tool call by a person has no agent
			whole = c.at(statKey{name: t.Agent})
		}
	case StatsSessions:
		if t.Session != "" {
			whole = c.at(statKey{name: t.Session})
			whole.Title = t.Title // the title of the oldest run, which comes last
		}
	case StatsPrincipals:
		whole = c.at(statKey{name: string(t.Principal)})
	case StatsDays:
		whole = c.at(statKey{name: t.Created.UTC().Format(time.DateOnly)})
	}
	if whole != nil {
		whole.Runs++
		if t.Ended {
			whole.took = append(whole.took, t.Updated.Sub(t.Created).Milliseconds())
		}
	}
	for i := range t.Tools {
		tool, s := &t.Tools[i], whole
		switch c.by {
		case StatsTools:
			k := serverKey(tool)
			k.name, k.remote = noServer(tool), tool.Remote
			s = c.at(k)
			s.Title, s.Server = cmp.Or(s.Title, tool.Name), cmp.Or(s.Server, tool.Server)
		case StatsServers:
			if tool.Server != "" {
				s = c.at(serverKey(tool))
				s.Server = cmp.Or(s.Server, tool.Server)
			}
		}
		if s != nil {
			s.add(tool, whole == nil)
		}
	}
	c.models(t, whole)
}

// noServer returns the name of a tool that did not exist. Only its name identifies it.
func noServer(t *view.ToolTally) string {
	if t.Server == "" {
		return t.Name
	}
	return ""
}

// models counts the model calls of a run.
func (c *counter) models(t *view.Tally, whole *Stat) {
	m, s := &t.Models, whole
	if m.Calls == 0 {
		return
	}
	if c.by == StatsModels {
		s = c.at(statKey{name: t.Model})
		s.Calls += m.Calls
		s.Errors += m.Errors
		s.took = append(s.took, m.Took...)
	}
	if s == nil {
		return
	}
	if whole != nil {
		whole.Models += m.Calls
	}
	s.Unmetered += m.Unmetered
	s.Input += m.Input
	s.Output += m.Output
	s.Cost += m.Cost
	s.CacheRead += m.CacheRead
	s.CacheWrite += m.CacheWrite
	if m.CacheRead+m.CacheWrite > 0 {
		s.Saved += c.price(t.Model).Saved(m.CacheRead, m.CacheWrite)
	}
}

// priceOnce returns a function that looks up the price of each model once. Without a price, it is zero.
func (h *Host) priceOnce(ctx context.Context) func(string) model.Price {
	known := map[string]model.Price{}
	return func(name string) model.Price {
		p, ok := known[name]
		if !ok {
			p, _, _ = h.Models().Price(ctx, name) // of a model that is not configured any more, none is known
			known[name] = p
		}
		return p
	}
}

// add counts the calls of a tool and, if timed, their latencies.
func (s *Stat) add(t *view.ToolTally, timed bool) {
	s.Calls += t.Calls
	s.Errors += t.Errors
	s.Denied += t.Denied
	s.Cached += t.Cached
	s.Unknown += t.Unknown
	s.Bytes += t.Bytes
	s.Cost += t.Cost
	if timed {
		s.took = append(s.took, t.Took...)
	}
}

// name sets the names of servers. If one identity has a name, it gets the plain name and the counts of calls from
// earlier releases.
func (c *counter) name() {
	identities := map[string]map[string]bool{}
	for k, s := range c.stats {
		if k.identity != "" {
			if identities[s.Server] == nil {
				identities[s.Server] = map[string]bool{}
			}
			identities[s.Server][k.identity] = true
		}
	}
	labels := map[*Stat]string{}
	for k, s := range c.stats {
		of := identities[s.Server]
		switch {
		case k.legacy != "" && len(of) == 1:
			for id := range of {
				known := k
				known.identity, known.legacy = id, ""
				if into := c.stats[known]; into != nil {
					into.merge(s)
					delete(c.stats, k)
				}
			}
		case k.identity != "" && len(of) > 1:
			labels[s] = agent.IdentityLabel(s.Server, k.identity)
		}
	}
	for s, label := range labels {
		s.Server = label
	}
}

// merge adds the counts of another Stat.
func (s *Stat) merge(o *Stat) {
	s.Title = cmp.Or(s.Title, o.Title)
	s.Calls += o.Calls
	s.Errors += o.Errors
	s.Denied += o.Denied
	s.Cached += o.Cached
	s.Unknown += o.Unknown
	s.Bytes += o.Bytes
	s.Cost += o.Cost
	s.took = append(s.took, o.took...)
}

// list returns the counts in their order.
func (c *counter) list() []Stat {
	list := make([]Stat, 0, len(c.stats))
	c.name()
	for _, s := range c.stats {
		slices.Sort(s.took)
		s.P50, s.P95, s.P99 = percentile(s.took, 50), percentile(s.took, 95), percentile(s.took, 99)
		s.took = nil
		switch c.by {
		case StatsTools:
			s.Name, s.Title = cmp.Or(s.Title, s.Name), ""
		case StatsServers:
			s.Name, s.Server = cmp.Or(s.Server, s.Name), ""
		}
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Stat) int {
		if c.by == StatsDays {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(b.Calls, a.Calls), cmp.Compare(b.Runs, a.Runs),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Server, b.Server))
	})
	return list
}

// percentile returns the value below which p percent of the sorted values are.
func percentile(sorted []int64, p int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
