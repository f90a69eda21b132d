package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/table"
)

// described is a row for a tool with a description of its own.
func described(name, remote, server, description string) *table.Tool {
	return &table.Tool{Kind: table.MCP, Name: name, Remote: remote, Server: server, Description: description, Message: -1}
}

// permutations returns all orders of a list.
func permutations(list []*table.Tool) [][]*table.Tool {
	if len(list) < 2 {
		return [][]*table.Tool{list}
	}
	var out [][]*table.Tool
	for i := range list {
		rest := slices.Concat(list[:i:i], list[i+1:])
		for _, p := range permutations(rest) {
			out = append(out, append([]*table.Tool{list[i]}, p...))
		}
	}
	return out
}

// identities returns everything by which rules and records find tools: names, identities, targets and digests.
func identities(c *Config) []string {
	list := summary(c)
	for name, s := range c.Servers {
		s.Cwd = "" // a folder of the test
		list = append(list, fmt.Sprintf("%s is %s %s", name, c.ServerID(name), TargetDigest(s)))
	}
	for name, t := range c.Tools {
		list = append(list, fmt.Sprintf("%s is %s %s", name, c.ToolID(name), t.Schema))
	}
	slices.Sort(list)
	return list
}

// TestRowOrder checks that the order of a table's rows does not affect any name, identity, tool or digest.
func TestRowOrder(t *testing.T) {
	command := func(argv ...string) string { return table.CommandURI(argv) }
	for _, tt := range []struct {
		name, text string
		rows       []*table.Tool
	}{
		{"two paths of one host", "", []*table.Tool{remoteRow("a", "https://h.example/a"), remoteRow("b", "https://h.example/b")}},
		{"two schemes", "", []*table.Tool{remoteRow("a", "http://localhost/a"), remoteRow("a", "ws://localhost/a"), remoteRow("b", "http://localhost:81/a")}},
		{"two spellings of one target", "", []*table.Tool{remoteRow("a", "https://h.example/a"), remoteRow("b", "HTTPS://H.example:443/a"), remoteRow("c", "https://h.example/c")}},
		{"two commands", "", []*table.Tool{remoteRow("a", command("npx", "x", "1")), remoteRow("a", command("npx", "x", "2")), remoteRow("b", command("x"))}},
		{"one name at three servers", "", []*table.Tool{remoteRow("a", "https://h.example/a"), remoteRow("a", "https://h.example/b"), remoteRow("a", "https://i.example/")}},
		{"names that become equal", "", []*table.Tool{described("a b", "a b", "https://h.example/", "one"), described("a.b", "a.b", "https://h.example/", "two"), described("a_b", "a_b", "https://h.example/", "three")}},
		{"several rows for one tool", "", []*table.Tool{described("x", "a", "https://h.example/", "one"), described("a", "a", "https://h.example/", "two"), described("a", "a", "https://h.example/", "three")}},
		{"two credentials", "secrets: {k: {env: K}, l: {env: L}}\n", []*table.Tool{
			{Kind: table.MCP, Name: "a", Remote: "a", Server: "https://h.example/", Credential: "k", Message: -1},
			{Kind: table.MCP, Name: "a", Remote: "a", Server: "https://h.example/", Credential: "l", Message: -1}, remoteRow("a", "https://h.example/")}},
		{"a server of the configuration among them", "servers: {s: {url: 'https://h.example/a', exclude: [b]}, h.example: {command: x}}\n",
			[]*table.Tool{remoteRow("a", "https://h.example/a"), remoteRow("b", "https://h.example/a"), remoteRow("a", "https://h.example/b"), remoteRow("c", "https://h.example/b")}},
		{"an entry of the file with the name of a row", "servers: {s: {command: x}}\ntools: {a: {server: s}}\n", []*table.Tool{remoteRow("a", "https://h.example/a"), remoteRow("a", "https://h.example/b")}},
		{"requests", "", []*table.Tool{{Kind: table.HTTP, Name: "w", Message: -1, Server: table.Request{URL: "https://h.example/1"}.URI()},
			{Kind: table.HTTP, Name: "w", Message: -1, Server: table.Request{URL: "https://h.example/2"}.URI()}, remoteRow("w", "https://h.example/")}},
	} {
		t.Run("SEC-T4_"+tt.name, func(t *testing.T) {
			var want, only []string
			digest := ""
			for _, rows := range permutations(tt.rows) {
				c, dir, err := loadTables(t, tt.text+"tool_tables: [t.arrow]\n", rows...)
				if err != nil {
					t.Fatal(err)
				}
				got := identities(c)
				if want == nil {
					want, digest = got, c.TableDigest(0)
				}
				if diff := cmp.Diff(want, got); diff != "" || c.TableDigest(0) != digest {
					t.Fatalf("digests %s, %s; -want +got:\n%s", digest, c.TableDigest(0), diff)
				}
				alone, _, err := loadTables(t, tt.text+"version: 1\n")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := alone.OnlyTable(t.Context(), filepath.Join(dir, "t.arrow"), "", table.Options{}, t.Logf); err != nil {
					t.Fatal(err)
				}
				got = identities(alone)
				if only == nil {
					only = got
				}
				if diff := cmp.Diff(only, got); diff != "" {
					t.Fatalf("alone: -want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestRowOfConfiguredServer checks rows of tables. A row with the same target as a configured server belongs to that
// server, however the target is written. Any other row is identified by its own target.
func TestRowOfConfiguredServer(t *testing.T) {
	const text = "servers: {bank: {url: 'https://h.example/a?k=1', exclude: [send], policy: {approval: always}}, tool: {command: npx, args: [-y, thing]}}\n"
	for _, tt := range []struct {
		name, server string
		is           string // name of the server; empty: a server of the table
	}{
		{"the same", "https://h.example/a?k=1", "bank"},
		{"upper case", "HTTPS://H.EXAMPLE/a?k=1", "bank"},
		{"default port", "https://h.example:443/a?k=1", "bank"},
		{"a fragment", "https://h.example/a?k=1#x", "bank"},
		{"a final dot", "https://h.example./a?k=1", "bank"},
		{"dot segments", "https://h.example/b/../a?k=1", "bank"},
		{"needless escapes", "https://h.example/%61?k=1", "bank"},
		{"the command", table.CommandURI([]string{"npx", "-y", "thing"}), "tool"},
		{"another scheme", "http://h.example/a?k=1", ""},
		{"another path", "https://h.example/A?k=1", ""},
		{"another query", "https://h.example/a?k=2", ""},
		{"another port", "https://h.example:8443/a?k=1", ""},
		{"a user", "https://u@h.example/a?k=1", ""},
		{"another host", "https://h.example.evil/a?k=1", ""},
		{"other arguments", table.CommandURI([]string{"npx", "-y", "thing", "--all"}), ""},
		{"arguments as one", table.CommandURI([]string{"npx", "-y thing"}), ""},
	} {
		t.Run("SEC-T3_"+tt.name, func(t *testing.T) {
			c, dir, err := loadTables(t, text)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "only.arrow")
			tabled(t, path, remoteRow("send", tt.server), remoteRow("get", tt.server))
			var notes []string
			if _, err := c.OnlyTable(t.Context(), path, "", table.Options{}, func(f string, a ...any) { notes = append(notes, fmt.Sprintf(f, a...)) }); err != nil {
				t.Fatal(err)
			}
			if len(c.Servers) != 1 {
				t.Fatalf("servers %v", c.ServerNames())
			}
			name := c.ServerNames()[0]
			switch is := IsTarget(c.ServerID(name)); {
			case tt.is == "" && (!is || c.Servers[name].IsTrusted()):
				t.Errorf("%s is %s, trusted: %v", name, c.ServerID(name), c.Servers[name].IsTrusted())
			case tt.is != "" && (name != tt.is || c.ServerID(name) != "project:"+tt.is):
				t.Errorf("%s is %s, want server %s", name, c.ServerID(name), tt.is)
			}
			if tt.is != "bank" {
				return
			}
			if s := c.Servers[name]; s.Policy.Approval.Mode != "always" || !slices.Equal(s.Include, []string{"get"}) || !catalog.Match(s.Exclude, "send") {
				t.Errorf("%+v", s)
			}
			if len(notes) != 1 {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// TestTablesOfOneHost checks that servers of two tables with the same name are different servers: a grant or a record
// of one does not apply to the other.
func TestTablesOfOneHost(t *testing.T) {
	const from = "http://localhost/a"
	ids := map[string]string{}
	for _, server := range []string{from, "https://localhost/b", "https://localhost/a", "http://localhost:81/a", "http://localhost/a?x", "ws://localhost/a", "http://localhost/A"} {
		c, dir, err := loadTables(t, "version: 1\n")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "only.arrow")
		tabled(t, path, remoteRow("send", server))
		if _, err := c.OnlyTable(t.Context(), path, "", table.Options{}, t.Logf); err != nil {
			t.Fatal(err)
		}
		id := c.ServerID("localhost")
		t.Run("SEC-T1_"+server, func(t *testing.T) {
			if other, ok := ids[id]; ok || !IsTarget(id) || id != TargetID(TargetDigest(c.Servers["localhost"])) {
				t.Errorf("%s and %s have the identity %q", server, other, id)
			}
		})
		ids[id] = server
	}
}
