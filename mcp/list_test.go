package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// TestToolPages requests a long list in pages of all sizes. Each tool must appear once, in the server's order and with
// the same bytes.
func TestToolPages(t *testing.T) {
	const n = 1500
	list := make([]mcp.ServerTool, n)
	var want []string
	for i := range list {
		def := fmt.Sprintf(`{"name":"tool_%d","description":"does %d","inputSchema":{"type":"object"},"x":[%d, 9007199254740993]}`, i, i, i)
		list[i], want = tool(def, echo), append(want, def)
	}
	for _, size := range []int{0, 7, 600, 749, 1499} {
		for name, dial := range ends(t, mcp.ServerConfig{NoModern: true, Tools: list, PageSize: size}) {
			t.Run(fmt.Sprintf("%s %d", name, size), func(t *testing.T) {
				tools, err := connect(t, mcp.ClientConfig{Dial: dial, Protocol: mcp.LatestLegacy}).Tools(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got := make([]string, len(tools))
				for i, tl := range tools {
					got[i] = string(tl.Raw)
					if tl.Remote != fmt.Sprintf("tool_%d", i) || tl.Description != fmt.Sprintf("does %d", i) || string(tl.Input) != `{"type":"object"}` {
						t.Fatalf("tool %d: %+v", i, tl)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d definitions are not those of the server", len(got))
				}
			})
		}
	}
}

// TestBrokenPages has a server send some valid pages and then an invalid one.
func TestBrokenPages(t *testing.T) {
	page := func(at int) string {
		var tools []string
		for i := range 600 {
			tools = append(tools, fmt.Sprintf(`{"name":"tool_%d"}`, 500*at+i)) // 100 of them twice
		}
		return fmt.Sprintf(`{"nextCursor":"%d","tools":[%s]}`, at+1, strings.Join(tools, ","))
	}
	for _, c := range []struct {
		name, third string
		code        tenon.Code
		tools       int
	}{
		{"the end", `{"tools":[{"name":"last"}]}`, "", 1101},
		{"no tools at the end", `{"tools":[],"nextCursor":null}`, "", 1100},
		{"no array", `{"tools":{}}`, tenon.CodeProtocol, 0},
		{"no object", `[]`, tenon.CodeProtocol, 0},
		{"a cursor again", `{"tools":[{"name":"last"}],"nextCursor":"1"}`, tenon.CodeProtocol, 0},
		{"a long cursor", `{"tools":[],"nextCursor":"` + strings.Repeat("x", 20_000) + `"}`, tenon.CodeTooLarge, 0},
		{"too many", `{"tools":[` + strings.Repeat(`{"name":"x"},`, 1000) + `{"name":"y"}]}`, tenon.CodeTooLarge, 0},
		{"an error", "", tenon.CodeTool, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dial := fake(t, legacy(func(r request, send func(string)) bool {
				var p struct{ Cursor string }
				if r.Params != nil {
					_ = json.Unmarshal(r.Params, &p)
				}
				switch {
				case p.Cursor == "":
					send(result(r, page(0)))
				case p.Cursor == "1":
					send(result(r, page(1)))
				case c.third == "":
					send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no"}}`, r.ID))
				default:
					send(result(r, c.third))
				}
				return true
			}))
			tools, err := connect(t, mcp.ClientConfig{Dial: dial, Protocol: mcp.LatestLegacy, MaxItems: 2000}).Tools(t.Context())
			if tenon.ErrorCode(err) != c.code || len(tools) != c.tools {
				t.Errorf("%d tools, error %v", len(tools), err)
			}
		})
	}
}

// TestLongPages checks that a list is bounded in bytes, even if it has few definitions and each of them is within the
// bound of a message.
func TestLongPages(t *testing.T) {
	pages := 0
	dial := fake(t, legacy(func(r request, send func(string)) bool {
		pages++
		send(result(r, fmt.Sprintf(`{"tools":[{"name":"t%d","description":%q}],"nextCursor":"%d"}`, pages, strings.Repeat("x", 100_000), pages)))
		return true
	}))
	_, err := connect(t, mcp.ClientConfig{Dial: dial, Protocol: mcp.LatestLegacy, MaxBytes: 1_000_000}).Tools(t.Context())
	if tenon.ErrorCode(err) != tenon.CodeTooLarge || pages != 10 {
		t.Errorf("%d pages, error %v", pages, err)
	}
}

// TestPagesGivenUp cancels a list while the second page is awaited. No goroutine may be left.
func TestPagesGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dial := fake(t, legacy(func(r request, send func(string)) bool {
		if r.Params == nil {
			send(result(r, `{"tools":[`+strings.Repeat(`{"name":"x"},`, 1000)+`{"name":"y"}],"nextCursor":"1"}`))
		} else {
			cancel()
		}
		return true
	}))
	tools, err := connect(t, mcp.ClientConfig{Dial: dial, Protocol: mcp.LatestLegacy, RequestTimeout: time.Minute}).Tools(ctx)
	if tenon.ErrorCode(err) != tenon.CodeCancelled || tools != nil {
		t.Errorf("%d tools, error %v", len(tools), err)
	}
}
