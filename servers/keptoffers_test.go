package servers

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// lister is a connection that offers a prompt, a resource and a template.
type lister struct {
	*fakeConn
	asked *int
}

func (l lister) Prompts(context.Context) ([]mcp.Prompt, error) {
	*l.asked++
	raw := `{"name":"p","arguments":[{"name":"<a>"}], "x":1}`
	p := mcp.Prompt{Raw: []byte(raw)}
	return []mcp.Prompt{p}, json.Unmarshal(p.Raw, &p)
}

func (l lister) Resources(context.Context) ([]mcp.Resource, error) {
	*l.asked++
	return []mcp.Resource{{URI: "a:b", Name: "r", Raw: []byte(`{"uri":"a:b","name":"r"}`)},
		{Template: "a:{x}", Name: "t", Raw: []byte(`{"uriTemplate":"a:{x}","name":"t"}`)}}, nil
}

// offersServer returns a server whose lists are kept in cache. asked counts the requests for lists.
func offersServer(cfg Config, cache, identity string, key byte, asked *int) *Server {
	s := faked(cfg, func(context.Context) (connection, error) { return lister{newFake(), asked}, nil })
	s.opts.Cache, s.opts.Identity = cache, identity
	s.opts.Seal = func(parts ...[]byte) []byte {
		mac := []byte{key}
		for _, p := range parts {
			mac = append(append(mac, p...), 0)
		}
		return mac
	}
	return s
}

// TestUX6Offers checks that prompts and resources are remembered without a start, byte for byte and with their time,
// and that only the same server of the same user gets them.
func TestUX6Offers(t *testing.T) {
	cache, asked := t.TempDir(), 0
	first := offersServer(Config{}, cache, "one", 1, &asked)
	before := time.Now().Add(-time.Second)
	if _, _, ok := first.RememberedPrompts(); ok {
		t.Error("there are prompts before the first listing")
	}
	prompts, err := first.Prompts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resources, err := first.Resources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := first.RememberedPrompts(); ok {
		t.Error("a connected server is not asked")
	}
	_ = first.Close()
	no := false
	for _, c := range []struct {
		name     string
		cfg      Config
		identity string
		key      byte
		refresh  bool
		want     bool
	}{
		{name: "same", identity: "one", key: 1, want: true},
		{name: "other identity", identity: "two", key: 1},
		{name: "other user", identity: "one", key: 2},
		{name: "other command", cfg: Config{Args: []string{"x"}}, identity: "one", key: 1},
		{name: "refresh", identity: "one", key: 1, refresh: true},
		{name: "required", cfg: Config{Required: true}, identity: "one", key: 1},
		{name: "eager", cfg: Config{Lifecycle: LifecycleEager}, identity: "one", key: 1},
		{name: "no prompts", cfg: Config{LoadPrompts: &no}, identity: "one", key: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			s := offersServer(c.cfg, cache, c.identity, c.key, &asked)
			defer s.Close()
			s.opts.RefreshTools = c.refresh
			got, at, ok := s.RememberedPrompts()
			if ok != c.want || ok && (at.Before(before) || at.After(time.Now()) || len(got) != 1 ||
				string(got[0].Raw) != string(prompts[0].Raw) || got[0].Arguments[0].Name != "<a>") {
				t.Errorf("%v, %v, %v", got, at, ok)
			}
			res, _, ok := s.RememberedResources()
			if ok != (c.want || c.name == "no prompts") || ok && !slices.EqualFunc(res, resources,
				func(a, b mcp.Resource) bool { return string(a.Raw) == string(b.Raw) && a.Template == b.Template }) {
				t.Errorf("%v, %v", res, ok)
			}
			if asked != 0 {
				t.Errorf("the server was asked %d times", asked)
			}
		})
	}
}

// TestUX6OffersFiles uses files that are no list of the user.
func TestUX6OffersFiles(t *testing.T) {
	cache, asked := t.TempDir(), 0
	s := offersServer(Config{}, cache, "one", 1, &asked)
	if _, err := s.Prompts(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := s.offersPath("prompts")
	_ = s.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f offersFile
	if err := json.Unmarshal(good, &f); err != nil {
		t.Fatal(err)
	}
	f.Items = append(f.Items, `{"name":"planted"}`)
	planted, _ := json.Marshal(f)
	f.Items = []string{"{}"}
	f.MAC = f.seal("prompts", s.opts.Seal)
	nameless, _ := json.Marshal(f)
	for name, b := range map[string][]byte{"planted": planted, "nameless": nameless, "no JSON": []byte("x"),
		"empty": nil, "a list": []byte("[]"), "large": make([]byte, maxCatalogue+1)} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			s := offersServer(Config{}, cache, "one", 1, &asked)
			defer s.Close()
			if got, _, ok := s.RememberedPrompts(); ok {
				t.Errorf("%v", got)
			}
		})
	}
}

var _ tenon.Toolset = lister{}

// TestListTime checks how long a list of several servers waits for one: a start has its own time.
func TestListTime(t *testing.T) {
	var asked int
	s := offersServer(Config{Command: "x", Timeout: 2 * time.Minute}, "", "", 1, &asked)
	defer s.Close()
	if got := s.ListTime(); got != 2*time.Minute+15*time.Second {
		t.Errorf("before the start: %v", got)
	}
	if _, err := s.Prompts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.ListTime(); got != 15*time.Second {
		t.Errorf("of a connected server: %v", got)
	}
}
