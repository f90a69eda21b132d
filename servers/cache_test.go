package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// catalogueOf returns a catalogue of n tools whose definitions have at least long bytes.
func catalogueOf(n, long int) *catalogue {
	c := &catalogue{Key: "k", Listed: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Protocol: mcp.Modern, Server: `a "server" 1`}
	raws := make([][]byte, n)
	for i := range raws {
		raws[i] = fmt.Appendf(nil, `{"name":"tool_%d", "description":"%s","inputSchema":{"type":"object"},"x":9007199254740993}`, i, strings.Repeat("d", long))
	}
	c.tools, _ = mcp.ParseTools(raws)
	return c
}

// TestCatalogueFile writes catalogues to files and reads them back.
func TestCatalogueFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "t.json")
	for _, n := range []int{0, 1, 3, 2000} {
		want := catalogueOf(n, 0)
		if err := want.store(path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := readCatalogue(b)
		if !ok {
			t.Fatalf("%d tools: cannot be read: %.200s", n, b)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(catalogue{})); diff != "" {
			t.Error(diff)
		}
	}
	if err := catalogueOf(10, maxCatalogue/10).store(path); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("a list that is too large is kept, or the one before it: %v %v", left, err)
	}
}

// TestCatalogueIsWrittenAtClose lists tools and closes the server at once. The last list must still be written.
func TestCatalogueIsWrittenAtClose(t *testing.T) {
	for range 20 {
		cache := t.TempDir()
		list := catalogueOf(200, 100).tools
		c := newFake()
		c.tools = func(context.Context) ([]tenon.Tool, error) { return list, nil }
		s := faked(Config{}, func(context.Context) (connection, error) { return c, nil })
		s.opts.Cache = cache
		for n := range 3 {
			list = list[:len(list)-n]
			if tools, err := s.List(t.Context()); err != nil || len(tools) != len(list) {
				t.Fatal(len(tools), err)
			}
			s.refresh()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(cache, "t.json"))
		if err != nil {
			t.Fatal(err)
		}
		if kept, ok := readCatalogue(b); !ok || len(kept.tools) != len(list) {
			t.Fatalf("not the last list is kept: %v", ok)
		}
		if left, err := os.ReadDir(cache); err != nil || len(left) != 1 {
			t.Errorf("there is more than the catalogue: %v %v", left, err)
		}
	}
}

// FuzzCatalogue reads files that another program may have written.
func FuzzCatalogue(f *testing.F) {
	for _, s := range []string{`{"key":"k","listed":"2026-01-02T03:04:05Z","tools":[{"name":"a"}]}`, `{"key":"k","tools":[]}`, `{"key":"k","tools":null}`, `{"tools":[{"name":"a"}],"key":7}`, `{"a\"b":1,"tools":[1]}`, `{"broken`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := readCatalogue(b)
		if !ok {
			return
		}
		for i := range c.tools {
			if c.tools[i].Remote == "" || len(c.tools[i].Raw) == 0 {
				t.Errorf("a tool without a name: %+v", c.tools[i])
			}
		}
	})
}
