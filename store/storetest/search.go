package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// putText indexes the texts of one run.
func putText(s store.Store, run string, upTo uint64, texts []store.Text) error {
	return s.PutTexts(context.Background(), []store.RunTexts{{Run: run, UpTo: upTo, Texts: texts}})
}

type searchCase struct {
	f    store.SearchFilter
	want string // runs and events, best first
}

// searches are queries of the texts that testSearch stores.
var searches = map[string]searchCase{
	"word":             {store.SearchFilter{Query: "london"}, "r2/2 r1/1 r2/3"},
	"all words":        {store.SearchFilter{Query: "LONDON weather!"}, "r2/2 r1/1"},
	"phrase":           {store.SearchFilter{Query: `"weather in london"`}, "r1/1"},
	"curly":            {store.SearchFilter{Query: `“weather  in”`}, "r1/1"},
	"phrase left open": {store.SearchFilter{Query: `"in London`}, "r1/1"},
	"part":             {store.SearchFilter{Query: "ondo hame"}, "r2/3"},
	"chinese":          {store.SearchFilter{Query: "北京的天"}, "r1/2"},
	"short chinese":    {store.SearchFilter{Query: "天气"}, "r1/2"},
	"short and long":   {store.SearchFilter{Query: "is london"}, "r1/1"},
	"short case":       {store.SearchFilter{Query: "ZÜ"}, "r1/2"},
	"long case":        {store.SearchFilter{Query: "ZÜRICH"}, "r1/2"},
	"one letter":       {store.SearchFilter{Query: "7"}, "r1/2"},
	"percent":          {store.SearchFilter{Query: "100%"}, "r1/2"},
	"percent short":    {store.SearchFilter{Query: "%"}, "r1/2"},
	"symbols":          {store.SearchFilter{Query: "c++"}, "r1/2"},
	"apostrophe":       {store.SearchFilter{Query: "it's"}, "r1/2"},
	"syntax":           {store.SearchFilter{Query: "NEAR(london AND NOT) text: ^* -"}, ""},
	"operators":        {store.SearchFilter{Query: "london OR weather"}, ""},
	"session":          {store.SearchFilter{Query: "london", Session: "s1"}, "r1/1"},
	"short in session": {store.SearchFilter{Query: "lo", Session: "s1"}, "r1/1"},
	"principal":        {store.SearchFilter{Query: "london", Principal: "anna"}, "r2/2 r2/3"},
	"limit":            {store.SearchFilter{Query: "london", Limit: 1}, "r2/2"},
	"nothing":          {store.SearchFilter{Query: "paris"}, ""},
	"not yet":          {store.SearchFilter{Query: "twice"}, ""},
	"late":             {store.SearchFilter{Query: "\"too late\""}, ""},
}

// testSearch indexes a run and searches it.
func testSearch(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	hits, err := s.Search(ctx, store.SearchFilter{Query: "anything"})
	must(t, err)
	equal(t, "in an empty store", hits, []store.Hit(nil))
	create(t, s, "r1", "s1", 2)
	anna := row("r2", "s2")
	anna.Principal = "anna"
	must(t, s.Append(ctx, store.Append{Create: anna, Run: "r2", Events: events(1, 3)}))
	must(t, s.Append(ctx, store.Append{Create: row("r0", "s1"), Run: "r0"})) // without events

	gaps, total, err := s.Unindexed(ctx, store.GapFilter{})
	must(t, err)
	equal(t, "all are new", gaps, []store.Gap{{Run: "r2", Last: 3}, {Run: "r1", Last: 2}})
	equal(t, "number of them", total, 3)
	gaps, total, err = s.Unindexed(ctx, store.GapFilter{Session: "s2"})
	must(t, err)
	equal(t, "of one session", gaps, []store.Gap{{Run: "r2", Last: 3}})
	equal(t, "number of a session", total, 1)
	gaps, total, err = s.Unindexed(ctx, store.GapFilter{Ended: true})
	must(t, err)
	equal(t, "ended runs", len(gaps)+total, 0)
	storeTexts(t, s, other)
	must(t, s.Append(ctx, store.Append{Run: "r1", Events: events(3, 1)}))
	gaps, _, err = other.Unindexed(ctx, store.GapFilter{Limit: 1})
	must(t, err)
	equal(t, "one gap", gaps, []store.Gap{{Run: "r1", After: 2, Last: 3}})

	for name, c := range searches {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			hits, err := other.Search(ctx, c.f)
			must(t, err)
			var got []string
			for _, h := range hits {
				got = append(got, fmt.Sprintf("%s/%d", h.Run, h.Seq))
			}
			equal(t, "hits", strings.Join(got, " "), c.want)
		})
	}
	hits, err = s.Search(ctx, store.SearchFilter{Query: "thames"})
	must(t, err)
	if len(hits) != 1 || hits[0].Session != "s2" || hits[0].Role != "tool" || hits[0].Rank <= 0 ||
		!strings.Contains(hits[0].Snippet, "London lies on the Thames.") || len(hits[0].Snippet) > 250 ||
		!strings.HasPrefix(hits[0].Snippet, "…") || !strings.HasSuffix(hits[0].Snippet, "…") {
		t.Errorf("hits %+v", hits)
	}
	for _, q := range []string{"", "  ", `""`, "\x00", strings.Repeat("word ", 40), strings.Repeat("x", 2_000)} {
		_, err := s.Search(ctx, store.SearchFilter{Query: q})
		wantCode(t, err, tenon.CodeInvalid)
	}
	long := strings.Repeat("长", store.MaxText) + "tail"
	create(t, s, "r3", "s3", 1)
	must(t, putText(s, "r3", 1, []store.Text{{Seq: 1, Role: "user", Text: "head " + long}}))
	for q, want := range map[string]int{"head": 1, "tail": 0} {
		hits, err := s.Search(ctx, store.SearchFilter{Query: q})
		must(t, err)
		equal(t, q+" of a long text", len(hits), want)
	}
}

// storeTexts stores texts of two runs, some of them twice, of events to come and of a deleted run.
func storeTexts(t *testing.T, s, other store.Store) {
	t.Helper()
	must(t, putText(s, "r1", 2, []store.Text{
		{Seq: 1, Role: "user", Text: "What is the\n weather in London, today?"},
		{Seq: 2, Role: "assistant", Text: "今天北京的天气很好。 Zürich: 7 °C, \x00 \xff 100% \"quoted\" it's C++"},
	}))
	// A concurrent indexer stores the same text again.
	must(t, putText(other, "r1", 2, []store.Text{{Seq: 2, Role: "assistant", Text: "twice"}}))
	must(t, putText(s, "r2", 1, nil))
	must(t, putText(s, "r2", 3, []store.Text{
		{Seq: 1, Role: "user", Text: "too late"},
		{Seq: 2, Role: "user", Text: "London London London: weather weather"},
		{Seq: 3, Role: "tool", Text: strings.Repeat("filler ", 2_000) + "London lies on the Thames. " +
			strings.Repeat("more ", 100)},
		{Seq: 4, Role: "tool", Text: "not there yet"},
	}))
	must(t, putText(s, "none", 1, []store.Text{{Seq: 1, Role: "user", Text: "of a deleted run: London"}}))
}

// testDelete deletes a session and checks that nothing else is deleted.
func testDelete(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	big := append([]byte{'"'}, append([]byte(strings.Repeat("x", 100<<10)), '"')...)
	shared := []byte("shared")
	digests := twoSessions(t, s, big, shared)
	child := row("r1/1", "s1")
	child.Caller = "r1"
	must(t, s.Append(ctx, store.Append{Create: child, Run: child.ID, Events: events(1, 1)}))
	sharedDigest, err := s.PutBlob(ctx, "r1/1", shared)
	must(t, err)

	// A session in use stays.
	release := own(t, other, "r1/1")
	wantCode(t, s.DeleteSession(ctx, "s1"), tenon.CodeConflict)
	release()
	must(t, s.PutSession(ctx, tenon.Session{ID: "fork", Parent: "s1", Head: "r1", HeadSeq: 2}))
	err = s.DeleteSession(ctx, "s1")
	wantCode(t, err, tenon.CodeConflict)
	if !strings.Contains(err.Error(), "fork") {
		t.Errorf("the error does not name the session: %v", err)
	}
	must(t, s.DeleteSession(ctx, "fork"))
	next := row("r4", "s4")
	next.Parent = "r1"
	must(t, s.Append(ctx, store.Append{Create: next, Run: "r4", Events: events(1, 1)}))
	wantCode(t, s.DeleteSession(ctx, "s1"), tenon.CodeConflict)
	must(t, s.DeleteSession(ctx, "s4"))

	must(t, s.DeleteSession(ctx, "s1"))
	wantCode(t, s.DeleteSession(ctx, "s1"), tenon.CodeNotFound)
	for _, run := range []string{"r1", "r1/1", "r4"} {
		_, err := s.Run(ctx, run)
		wantCode(t, err, tenon.CodeNotFound)
		_, err = other.Events(ctx, run, 0, 0)
		wantCode(t, err, tenon.CodeNotFound)
		wantCode(t, s.Append(ctx, store.Append{Run: run, Events: events(4, 1)}), tenon.CodeNotFound)
		wantCode(t, other.Append(ctx, store.Append{Run: run, Events: events(4, 1)}), tenon.CodeNotFound)
	}
	_, err = s.Signal(ctx, "gr1")
	wantCode(t, err, tenon.CodeNotFound)
	_, err = s.Blob(ctx, digests[0])
	wantCode(t, err, tenon.CodeNotFound)
	balances, err := s.Balances(ctx, "session/")
	must(t, err)
	if len(balances) != 1 || balances[0].Key != "session/s2/tokens" {
		t.Errorf("balances %+v", balances)
	}

	// The other session keeps all its data.
	keepsOther(t, s, len(big), map[string]string{sharedDigest: "shared", digests[1]: "own 1"})
	must(t, s.DeleteSession(ctx, "s2"))
	_, err = s.Blob(ctx, sharedDigest)
	wantCode(t, err, tenon.CodeNotFound)
	hits, err := s.Search(ctx, store.SearchFilter{Query: "find"})
	must(t, err)
	equal(t, "hits", len(hits), 0)
	create(t, s, "r1", "s1", 1) // the ids are free
}

// twoSessions creates a run in each of two sessions, with texts, a signal, a charge, a blob that both have and another.
// It returns the digests of the blobs that are not shared.
func twoSessions(t *testing.T, s store.Store, big, shared []byte) []string {
	t.Helper()
	ctx := t.Context()
	var digests []string
	for i, id := range []string{"r1", "r2"} {
		blobs := [][]byte{shared, fmt.Appendf(nil, "own %d", i)}
		es := events(1, 3)
		es[1].Data = big
		must(t, s.Append(ctx, store.Append{Create: row(id, fmt.Sprint("s", i+1)), Run: id, Events: es, Blobs: blobs}))
		digest, err := s.PutBlob(ctx, id, blobs[1])
		must(t, err)
		digests = append(digests, digest)
		_, err = s.PutSignal(ctx, store.Signal{ID: "g" + id, Run: id, Kind: "message"})
		must(t, err)
		must(t, putText(s, id, 3, []store.Text{{Seq: 1, Role: "user", Text: "find me"}}))
		_, err = s.Reserve(ctx, id, "1", []store.Charge{{Key: fmt.Sprintf("session/s%d/tokens", i+1), Amount: 5}})
		must(t, err)
	}
	return digests
}

// keepsOther checks that the session s2 has its blobs, its events, the second of size bytes, and its texts.
func keepsOther(t *testing.T, s store.Store, size int, blobs map[string]string) {
	t.Helper()
	ctx := t.Context()
	for digest, want := range blobs {
		got, err := s.Blob(ctx, digest)
		must(t, err)
		equal(t, "blob", string(got), want)
	}
	es, err := s.Events(ctx, "r2", 0, 0)
	must(t, err)
	if len(es) != 3 || len(es[1].Data) != size {
		t.Errorf("%d events of the other session", len(es))
	}
	hits, err := s.Search(ctx, store.SearchFilter{Query: "find"})
	must(t, err)
	if len(hits) != 1 || hits[0].Session != "s2" {
		t.Errorf("hits %+v", hits)
	}
}

// testDeleteMany deletes sessions, of which some must stay.
func testDeleteMany(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	var list []tenon.Session
	for _, id := range []string{"fork", "base", "held", "kept", "used", "plain"} {
		must(t, s.Append(ctx, store.Append{Create: row("r_"+id, id), Run: "r_" + id, Events: events(1, 2)}))
	}
	v, err := s.Session(ctx, "fork")
	must(t, err)
	v.Parent, v.Head, v.HeadSeq = "base", "r_base", 1
	must(t, s.PutSession(ctx, v))
	must(t, s.PutSession(ctx, tenon.Session{ID: "young", Parent: "kept", Head: "r_kept", HeadSeq: 1}))
	for _, id := range []string{"fork", "base", "held", "kept", "used", "plain"} {
		v, err := s.Session(ctx, id)
		must(t, err)
		list = append(list, v)
	}
	list = append(list, tenon.Session{ID: "never"})
	release := own(t, other, "r_held")
	defer release()
	list[4].Updated = list[4].Updated.Add(-1)
	var last int
	gone, err := s.DeleteSessions(ctx, list, func(n int) { last = n })
	must(t, err)
	var names []string
	for _, v := range gone {
		names = append(names, v.ID)
	}
	equal(t, "deleted", names, []string{"fork", "base", "plain"})
	equal(t, "progress", last, 3)
	for _, v := range list {
		_, err := s.Session(ctx, v.ID)
		there := err == nil
		equal(t, v.ID+" is there", there, v.ID == "held" || v.ID == "kept" || v.ID == "used")
	}
	gone, err = s.DeleteSessions(ctx, nil, nil)
	equal(t, "of no list", len(gone), 0)
	must(t, err)
}
