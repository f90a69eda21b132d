package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// The scale of P10.list. The two take turns, list by list.
const (
	listTools = 1000
	lists     = 60
)

// The children of P10.list: our server with the tools, and one that answers every line
// with the bytes that ours sends.
const (
	listServer = "list-ours"
	listPipe   = "list-pipe"
)

// measureP10List measures the listing of 1,000 tools over stdio, both ends ours, from the
// request to the tools, against a pipe over which the same bytes go and nobody looks
// at them.
func measureP10List(s *session) error {
	var ratio, ours, floor []float64
	for range s.rounds {
		mine, bare, err := listRound(s.ctx, s.exe)
		if err != nil {
			return err
		}
		ratio, ours, floor = append(ratio, mine/bare), append(ours, mine), append(floor, bare)
	}
	s.add("P10.list", "a list of 1,000 tools over stdio against sending its bytes", "ratio", ratio)
	s.add("P10.list.ours", "a list of 1,000 tools over stdio: p50", "µs", ours)
	s.add("P10.list.bytes", "its bytes over a bare pipe: p50", "µs", floor)
	return nil
}

// listRound returns how long a list takes, in microseconds, and its bytes alone.
func listRound(ctx context.Context, exe string) (mine, bare float64, err error) {
	c, err := mcp.Connect(ctx, mcp.ClientConfig{Protocol: mcp.LatestLegacy, Name: "figures", Version: "1", Dial: func(ctx context.Context) (mcp.Stream, error) {
		return transport.DialStdio(ctx, transport.StdioConfig{Command: exe, Args: []string{"child", "server", listServer}, Env: os.Environ()})
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

// listDefinitions are the tools that are listed.
func listDefinitions() []mcp.ServerTool {
	list := make([]mcp.ServerTool, listTools)
	for i, t := range someTools(0, listTools) {
		list[i].Definition, _ = json.Marshal(struct { // texts always encode
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Input       json.RawMessage `json:"inputSchema"`
		}{t.Remote, t.Description, t.Input})
	}
	return list
}

// listReply is what is sent for a list: the answer of our server.
func listReply() []byte {
	definitions := make([][]byte, listTools)
	for i, t := range listDefinitions() {
		definitions[i] = t.Definition
	}
	return append(append([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`), bytes.Join(definitions, []byte{','})...), "]}}\n"...)
}

// serveList is our server with the tools, over stdin and stdout.
func serveList(ctx context.Context) error {
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "figures", Version: "1", Tools: listDefinitions()})
	if err != nil {
		return err
	}
	if err := s.Serve(ctx, transport.NewLines(os.Stdin, os.Stdout, 0)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// serveListPipe answers each line with the bytes of the list.
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
