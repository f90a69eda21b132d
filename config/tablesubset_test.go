package config

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/table"
)

// TestSubset checks which configured tools a table selects. Rows never add a server.
func TestSubset(t *testing.T) {
	const text = "servers:\n  a: {url: https://a.example/mcp}\n  b: {command: npx, args: [-y, \"@x/b\"]}\n" +
		"  off: {url: https://off.example/, enabled: false}\ntool_tables: [t.arrow]\n"
	c, dir, err := loadTables(t, text, remoteRow("sub", "https://t.example/"))
	if err != nil {
		t.Fatal(err)
	}
	servers := len(c.Servers)
	renamed := remoteRow("plus", "https://a.example/mcp")
	renamed.Remote = "add"
	path := filepath.Join(dir, "only.arrow")
	tabled(t, path, renamed, remoteRow("keep", table.CommandURI([]string{"npx", "-y", "@x/b"})),
		remoteRow("named", table.ServerURI("a")), remoteRow("sub", "https://t.example/"),
		remoteRow("none", "https://none.example/"), remoteRow("x", "https://off.example/"),
		remoteRow("rm", table.CommandURI([]string{"rm", "-rf", "/"})),
		&table.Tool{Kind: table.HTTP, Name: "web", Message: -1, Server: table.Request{URL: "https://h.example/"}.URI()})
	s, err := c.Subset(context.Background(), path, "", table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tool := func(server, remote string) *tenon.Tool {
		return &tenon.Tool{Server: server, Remote: remote, Name: remote, Kind: tenon.KindMCP}
	}
	tableServer := c.Tools["sub"].Server
	for want, tools := range map[bool][]*tenon.Tool{
		true: {tool("a", "add"), tool("b", "keep"), tool("a", "named"), tool(tableServer, "sub"),
			{Kind: tenon.KindHTTP, Server: "http_tools", Name: "web"}},
		false: {tool("a", "plus"), tool("a", "keep"), tool("off", "x"), {Kind: tenon.KindHTTP, Name: "other"}},
	} {
		for _, tool := range tools {
			if s.Has(tool) != want {
				t.Errorf("RP-22: %s.%s %s: %v, want %v", tool.Server, tool.Remote, tool.Name, !want, want)
			}
		}
	}
	left := strings.Join(s.Left, "\n")
	for _, want := range []string{"row 4, 'Row4': tool 'none'", "row 5, 'Row5': tool 'x' is one of server 'off', which is " +
		"not enabled", "row 6, 'Row6': tool 'rm'"} {
		if !strings.Contains(left, want) {
			t.Errorf("%q is not in %s", want, left)
		}
	}
	if len(s.Left) != 3 || s.Rows != 5 || len(c.Servers) != servers {
		t.Errorf("%d left, %d rows, servers %v", len(s.Left), s.Rows, slices.Sorted(slices.Values(c.AllServerNames())))
	}
}
