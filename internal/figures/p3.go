package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/mcp"
)

// The kinds of paths between a client and the MCP server of P3 and P4.
const (
	pathDirect = "direct" // the client reaches the server itself
	pathProxy  = "proxy"  // httputil.ReverseProxy in between
	pathHub    = "hub"    // tenon serve in between
	pathBridge = "bridge" // tenon serve in between, and the server is on a pipe
	pathEcho   = "echo"   // no MCP: net/http answers with the body
)

// measureP3 compares the gateway with httputil.ReverseProxy in front of the same MCP server, in each era, and with
// large results. A path adds its time and CPU less the time and CPU of the direct path.
func measureP3(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	var failures []error
	for _, era := range []struct{ id, protocol string }{{"P3", mcp.Modern}, {"P3.2025", mcp.LatestLegacy}} {
		o, err := s.paths(tenon, era.protocol, 0, pathDirect, pathProxy, pathHub)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		direct, proxy, hub := o[pathDirect], o[pathProxy], o[pathHub]
		name := "gateway, " + era.protocol
		s.add(era.id+".p50", name+": p50 added, against what ReverseProxy adds", "ratio",
			ratios(less(hub.p50, direct.p50), less(proxy.p50, direct.p50)))
		s.add(era.id+".cpu", name+": CPU added, against what ReverseProxy adds", "ratio",
			ratios(less(hub.cpu, direct.cpu), less(proxy.cpu, direct.cpu)))
		s.add(era.id+".total", name+": whole p50 against ReverseProxy's", "ratio", ratios(hub.p50, proxy.p50))
		s.add(era.id+".rps64", name+": calls/s with 64 callers against ReverseProxy's", "ratio",
			ratios(hub.rps64, proxy.rps64))
		s.add(era.id+".added", name+": p50 added", "µs", less(hub.p50, direct.p50))
		s.add(era.id+".proxy.added", "ReverseProxy, "+era.protocol+": p50 added", "µs", less(proxy.p50, direct.p50))
		s.add(era.id+".direct", "direct, "+era.protocol+": p50", "µs", direct.p50)
	}
	for _, size := range []struct {
		id    string
		bytes int
	}{{"P3.big", 1 << 20}, {"P3.16k", 16 << 10}} {
		o, err := s.paths(tenon, mcp.Modern, size.bytes, pathProxy, pathHub)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		s.add(size.id, fmt.Sprintf("gateway: whole p50 of a result of %d KiB against ReverseProxy's", size.bytes>>10),
			"ratio", ratios(o[pathHub].p50, o[pathProxy].p50))
	}
	return errors.Join(failures...)
}

// measureP4 compares a call over HTTP through the gateway to a server on a pipe with a bare HTTP echo.
func measureP4(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	o, err := s.paths(tenon, mcp.Modern, 0, pathEcho, pathBridge)
	if err != nil {
		return err
	}
	s.add("P4", "HTTP to stdio: p50 against a bare HTTP echo", "ratio", ratios(o[pathBridge].p50, o[pathEcho].p50))
	s.add("P4.rps64", "the same: calls/s with 64 callers", "ratio", ratios(o[pathBridge].rps64, o[pathEcho].rps64))
	s.add("P4.bridge", "HTTP to stdio: p50", "µs", o[pathBridge].p50)
	s.add("P4.echo", "bare HTTP echo: p50", "µs", o[pathEcho].p50)
	return nil
}

// paths measures paths in the same rounds. Size is the size of the results in bytes; 0: the payload.
func (s *session) paths(tenon, protocol string, size int, kinds ...string) (map[string]*outcome, error) {
	var list []candidate
	for _, k := range kinds {
		single := size > 0 || k == pathDurable || k == pathCommits
		list = append(list, candidate{name: k, single: single, command: []string{s.exe, "child", pathChild,
			strings.Join([]string{k, protocol, fmt.Sprint(size), tenon}, "|")}})
	}
	return s.contest(list)
}

// less returns the differences of two lists.
func less(a, b []float64) []float64 {
	d := make([]float64, min(len(a), len(b)))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return d
}
