package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

const (
	randomNames = 1 << iota
	randomCollision
	randomLength
	randomTwice
)

// randomSource returns a server with random tools. Their names clash in many ways: as given, after they were made
// valid, after a clash was resolved, and with names in the configuration. The bits of random say what else is random.
func randomSource(r *rand.Rand, server string, random int) Source {
	parts := []string{"a", "b", "a_b", "a.b", "s1_a", "s2_a", "a_1", "a_2", "x y", "add", "s3_add", "ü", strings.Repeat("long", 16), strings.Repeat("long", 16) + "er",
		"a_" + hash("s1", "a"), "s2_add_" + hash("s2", "add")}
	src := Source{Server: server, Trusted: true, About: "what " + server + " does"}
	if random&randomNames == 0 {
		parts = []string{"a", "b", "add", "x y", strings.Repeat("long", 16), "c", "d", "e"}
	}
	if random&randomCollision != 0 {
		src.Naming.OnCollision = []string{"", "", CollisionSuffix, CollisionError}[r.IntN(4)]
	}
	if random&randomLength != 0 {
		src.Naming.MaxLen = []int{0, 0, 16, 40}[r.IntN(4)]
	}
	if r.IntN(3) == 0 {
		src.Exclude = []string{"b*"}
	}
	for i := range r.IntN(12) {
		n := parts[r.IntN(len(parts))]
		if r.IntN(3) == 0 {
			n += parts[r.IntN(len(parts))]
		}
		if random&randomTwice == 0 && slices.ContainsFunc(src.Tools, func(t tenon.Tool) bool { return t.Remote == n }) {
			continue
		}
		t := tenon.Tool{Remote: n, Description: fmt.Sprint("number ", i, " of ", server), Input: json.RawMessage(`{"type":"object"}`)}
		switch r.IntN(12) {
		case 0:
			t.Input = json.RawMessage(`{"type":`)
		case 1:
			if random&randomTwice != 0 { // a server may list the same tool twice
				src.Tools = append(src.Tools, t)
			}
		case 2:
			if src.Entries == nil {
				src.Entries = map[string]Tool{}
			}
			src.Entries[parts[r.IntN(2)]] = Tool{RemoteName: n}
		case 3:
			src.Transform = []Transform{{Prefix: parts[r.IntN(3)] + "_"}}
		}
		src.Tools = append(src.Tools, t)
	}
	return src
}

// same compares a snapshot with a new one that is merged from the same listings without a previous snapshot.
func same(t *testing.T, what string, got *Snapshot, problems []error, listings []*Listing) {
	t.Helper()
	want, wrong := Merge(listings)
	said := func(errs []error) (list []string) {
		for _, err := range errs {
			list = append(list, err.Error())
		}
		return list
	}
	if !slices.Equal(said(wrong), said(problems)) {
		t.Fatalf("%s: problems: %s", what, cmp.Diff(said(wrong), said(problems)))
	}
	if !slices.Equal(want.Withheld(), got.Withheld()) {
		t.Fatalf("%s: withheld: %s", what, cmp.Diff(want.Withheld(), got.Withheld()))
	}
	if got.Digest() != want.Digest() {
		t.Fatalf("%s: tools: %s", what, cmp.Diff(want.Tools(), got.Tools()))
	}
}

// TestMergeAgain adds, changes and removes servers at random. A merge that reuses the last snapshot must give the same
// bytes as a merge from scratch.
func TestMergeAgain(t *testing.T) {
	patched := 0
	for seed := range uint64(640) {
		r := rand.New(rand.NewPCG(seed, 7))
		random := int(seed % 16)
		var listings []*Listing
		var last *Snapshot
		for step := range 12 {
			next := slices.Clone(listings)
			for range 1 + r.IntN(2) {
				server := fmt.Sprint("s", 1+r.IntN(6))
				at := slices.IndexFunc(next, func(s *Listing) bool { return s.source.Server == server })
				switch listing := Shape(randomSource(r, server, random)); {
				case at < 0 || r.IntN(20) == 0: // two servers of the same name, which a host never has
					next = append(next, listing)
				case r.IntN(4) == 0:
					next = slices.Delete(next, at, at+1)
				default:
					next[at] = listing
				}
			}
			switch r.IntN(8) {
			case 0:
				r.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
			case 1:
				next = append(next, next[:min(1, len(next))]...) // the same one twice
			}
			listings = next
			var before []byte
			if last != nil {
				before = last.Encode()
			}
			s, problems := last.Merge(listings)
			same(t, fmt.Sprintf("seed %d, step %d", seed, step), s, problems, listings)
			if last != nil && last.base != nil && last.plain && s.base != nil && areAlike(listings) {
				gone, fresh := joinAll(others(last.listings, listings)), joinAll(others(listings, last.listings))
				base, groups := exchange(last.base, gone, fresh)
				if !slices.Equal(base, s.base) {
					t.Fatalf("seed %d, step %d: another order", seed, step)
				}
				if items, ok := last.patch(base, groups); ok {
					patched++
					if !slices.EqualFunc(items, s.items, func(a, b *item) bool { return string(a.encoded()) == string(b.encoded()) }) {
						t.Fatalf("seed %d, step %d: patched, it is another list", seed, step)
					}
				}
			}
			if last != nil && string(last.Encode()) != string(before) {
				t.Fatal("the snapshot before has changed")
			}
			last = s
			if r.IntN(4) == 0 { // a filtered snapshot is no base for a merge, and gives the same result
				cut := s.Only(func(t *tenon.Tool) bool { return t.Server != "s1" })
				s, problems = cut.Merge(listings)
				same(t, fmt.Sprintf("seed %d, step %d, of a part", seed, step), s, problems, listings)
			}
		}
	}
	if patched < 300 {
		t.Errorf("only %d snapshots were patched", patched)
	}
}

// TestMergeAgainKeeps checks that a merge reuses the tools that have not changed, renamed or not.
func TestMergeAgainKeeps(t *testing.T) {
	listing := func(server string, names ...string) *Listing {
		return Shape(Source{Server: server, Tools: tools(names...)})
	}
	a, b := listing("a", "clash", "only_a", "soon"), listing("b", "clash", "only_b")
	before, _ := Merge([]*Listing{a, b})
	after, _ := before.Merge([]*Listing{a, b, listing("c", "soon", "only_c")})
	if got, want := strings.Join(after.Names(), " "), "a_clash a_soon b_clash c_soon only_a only_b only_c"; got != want {
		t.Fatalf("tools %s, want %s", got, want)
	}
	for _, name := range []string{"a_clash", "b_clash", "only_a", "only_b"} {
		x, _ := before.Lookup(name)
		if y, _ := after.Lookup(name); x != y {
			t.Errorf("%s is another one", name)
		}
	}
	if _, ok := before.Lookup("soon"); !ok {
		t.Error("the snapshot before has changed")
	}
	if back, _ := after.Merge([]*Listing{a, b}); back.Digest() != before.Digest() {
		t.Error("a name that nobody else wants any more is not given back")
	}
}

// TestMergeAgainWithShortNames adds a tool with a name that another tool would have after a clash, if that name were
// not too long for its server.
func TestMergeAgainWithShortNames(t *testing.T) {
	const name = "a_name_for_two"
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprint("tool_", i))
	}
	listings := []*Listing{Shape(Source{Server: "first", Tools: tools(name), Naming: Naming{MaxLen: 16}}), Shape(Source{Server: "second", Tools: tools(append(many, name)...)})}
	before, _ := Merge(listings)
	listings = append(listings, Shape(Source{Server: "third", Tools: tools("first_" + name)}))
	s, problems := before.Merge(listings)
	same(t, "a third", s, problems, listings)
	if _, ok := s.Lookup("first_" + name); ok {
		t.Error("one of two has the name that both came to")
	}
}

// TestMergeAgainWhileRead merges a snapshot again in many goroutines, while others read it.
func TestMergeAgainWhileRead(t *testing.T) {
	var listings []*Listing
	for i := range 8 {
		listings = append(listings, Shape(Source{Server: fmt.Sprint("s", i), Tools: tools("clash", fmt.Sprint("only_", i), "b", "a")}))
	}
	base, _ := Merge(listings)
	var wg sync.WaitGroup
	digests := make([]string, 16)
	for i := range digests {
		wg.Go(func() {
			mine := slices.Clone(listings)
			mine[i%8] = Shape(Source{Server: fmt.Sprint("s", i%8), Tools: tools("clash", "new", "b")})
			s, _ := base.Merge(mine)
			digests[i] = s.Digest()
			base.Index().Search("clash", 3)
			base.For("openai")
			base.Only(func(t *tenon.Tool) bool { return t.Remote == "clash" }).Digest()
			again, _ := s.Merge(listings)
			if again.Digest() != base.Digest() {
				t.Error("the way back leads elsewhere")
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		if digests[i] != digests[i+8] {
			t.Errorf("server %d: the same change twice gives %s and %s", i, digests[i], digests[i+8])
		}
	}
}
