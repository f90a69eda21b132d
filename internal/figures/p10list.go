package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// Scale of P10.list. Ours and the floor take turns, list by list.
const (
	listTools = 1000
	lists     = 60
)

// The children of P10.list: tenon's server with the tools, and a server that responds to every line with the
// bytes of tenon's list.
const (
	listServer = "list-ours"
	listPipe   = "list-pipe"
)

// measureP10List measures the cost of a list of 1,000 tools compared with sending its bytes. P10.list
// compares tenon's own list over HTTP with a handler that sends the same bytes. P10.list.stdio compares the
// list of a stdio server, from the request to the parsed tools, with a pipe that carries the same bytes
// unparsed.
func measureP10List(s *session) error {
	var over, list, plain, ratio, ours, floor []float64
	for range s.rounds {
		l, p, err := s.listHTTP()
		if err != nil {
			return err
		}
		over, list, plain = append(over, l/p), append(list, l), append(plain, p)
		mine, bare, err := listRound(s.ctx, s.exe)
		if err != nil {
			return err
		}
		ratio, ours, floor = append(ratio, mine/bare), append(ours, mine), append(floor, bare)
	}
	s.add("P10.list", "tenon's list of 1,000 tools over HTTP against a handler that sends its bytes: p50",
		"ratio", over)
	s.add("P10.list.http", "tenon's list of 1,000 tools over HTTP: p50", "µs", list)
	s.add("P10.list.http.bytes", "its bytes from a bare handler: p50", "µs", plain)
	s.add("P10.list.stdio",
		"a list of 1,000 tools that a server gives over stdio, read, against its bytes over a bare pipe, unread",
		"ratio", ratio)
	s.add("P10.list.stdio.ours", "a list of 1,000 tools that a server gives over stdio: p50", "µs", ours)
	s.add("P10.list.stdio.bytes", "its bytes over a bare pipe: p50", "µs", floor)
	return nil
}

// listHTTP returns two durations in microseconds: tenon's list of tools over HTTP, and the same bytes from a handler
// that only writes them. The requests alternate.
func (s *session) listHTTP() (mine, bare float64, err error) {
	dir, err := os.MkdirTemp(s.tmp, "list-")
	if err != nil {
		return 0, 0, err
	}
	h, err := host.Open(s.ctx, host.Config{Home: dir, LookupEnv: os.LookupEnv,
		Toolsets: map[string]tenon.Toolset{"many": newCrowd(listTools)}})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	var body []byte // bytes of the list
	mux := http.NewServeMux()
	mux.Handle("/", httpapi.Handler(h))
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // fails if the client has gone
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	buf := make([]byte, 1<<20)
	get := func(path string) (int, float64, error) {
		begun := time.Now()
		resp, err := client.Get(web.URL + path)
		if err != nil {
			return 0, 0, err
		}
		n, err := io.ReadFull(resp.Body, buf)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil // end of the body
		}
		return n, float64(time.Since(begun)) / 1e3, errors.Join(err, resp.Body.Close())
	}
	n, _, err := get(listPath)
	if err != nil || !bytes.Contains(buf[:n], []byte(`"tool_998"`)) {
		return 0, 0, errors.Join(fmt.Errorf("this is not the list: %.200s", buf[:n]), err)
	}
	body = bytes.Clone(buf[:n])
	var took [2][]float64
	for i := range 5 * lists {
		for k, path := range []string{listPath, "/bytes"} {
			n, t, err := get(path)
			if err != nil || n != len(body) {
				return 0, 0, errors.Join(fmt.Errorf("%d bytes of %d", n, len(body)), err)
			}
			if i >= lists { // the first requests warm up
				took[k] = append(took[k], t)
			}
		}
	}
	return median(took[0]), median(took[1]), nil
}

// listPath is the route of the list.
const listPath = "/api/v1/tools"

// listRound returns two durations in microseconds: tools/list with a parsed result, and with only its bytes.
func listRound(ctx context.Context, exe string) (mine, bare float64, err error) {
	c, err := mcp.Connect(ctx, mcp.ClientConfig{Protocol: mcp.LatestLegacy, Name: "figures", Version: "1",
		Dial: func(ctx context.Context) (mcp.Stream, error) {
			return transport.DialStdio(ctx, transport.StdioConfig{Command: exe,
				Args: []string{"child", "server", listServer}, Env: os.Environ()})
		}})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	cmd := exec.CommandContext(ctx, exe, "child", "server", listPipe)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	lines, size := bufio.NewReaderSize(out, 1<<20), len(listReply())
	var tookOurs, tookBare []float64
	for range lists {
		begun := time.Now()
		tools, err := c.Tools(ctx)
		tookOurs = append(tookOurs, float64(time.Since(begun))/1e3)
		if err != nil || len(tools) != listTools {
			return 0, 0, errors.Join(fmt.Errorf("%d tools of %d", len(tools), listTools), err)
		}
		begun = time.Now()
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"); err != nil {
			return 0, 0, err
		}
		line, err := lines.ReadSlice('\n')
		tookBare = append(tookBare, float64(time.Since(begun))/1e3)
		if err != nil || len(line) != size {
			return 0, 0, errors.Join(fmt.Errorf("%d bytes of %d", len(line), size), err)
		}
	}
	return median(tookOurs), median(tookBare), nil
}

// listDefinitions returns n definitions of tools.
func listDefinitions(n int) []mcp.ServerTool {
	list := make([]mcp.ServerTool, n)
	for i, t := range someTools(0, n) {
		list[i].Definition, _ = json.Marshal(struct { // strings always encode
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Input       json.RawMessage `json:"inputSchema"`
		}{t.Remote, t.Description, t.Input})
	}
	return list
}

// listReply returns the response of tenon's server to a list request.
func listReply() []byte {
	definitions := make([][]byte, listTools)
	for i, t := range listDefinitions(listTools) {
		definitions[i] = t.Definition
	}
	return append(append([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`),
		bytes.Join(definitions, []byte{','})...), "]}}\n"...)
}

// serveList runs tenon's server with n tools over stdin and stdout.
func serveList(ctx context.Context, n int) error {
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "figures", Version: "1", Tools: listDefinitions(n)})
	if err != nil {
		return err
	}
	if err := s.Serve(ctx, transport.NewLines(os.Stdin, os.Stdout, 0)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// serveListPipe responds to each line with the bytes of the list.
func serveListPipe(in io.Reader, out io.Writer) error {
	reply := listReply()
	for r := bufio.NewReader(in); ; {
		if _, err := r.ReadSlice('\n'); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := out.Write(reply); err != nil {
			return err
		}
	}
}
