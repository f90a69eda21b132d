package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/garbage"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// tableServer is the prefix of the name of T1's child. The number of tools follows.
const tableServer = "list-of-"

// measureT1 measures a tool table of a server with 10,000 tools, as created by tenon tools list --out, from
// the start to the table. It is compared with starting the same server, initializing it, and reading the
// bytes of its list unparsed. The server was listed before; the first listing, which pins the tools, is
// recorded separately.
func measureT1(s *session) error {
	var ratio, cpu, fresh, ours, floor, list, write []float64
	for range s.rounds {
		home, err := os.MkdirTemp(s.tmp, "t1-")
		if err != nil {
			return err
		}
		first, w, err := s.toolTable(home, manyTools)
		if err != nil {
			return err
		}
		first += w
		begun := cpuUsed()
		bare, err := bareList(s.ctx, s.exe, manyTools)
		if err != nil {
			return err
		}
		between := cpuUsed()
		l, w, err := s.toolTable(home, manyTools)
		if err != nil {
			return err
		}
		cpu = append(cpu, float64(cpuUsed()-between)/float64(between-begun))
		ratio, floor = append(ratio, (l+w).Seconds()/bare.Seconds()), append(floor, bare.Seconds()*1e3)
		fresh = append(fresh, first.Seconds()/bare.Seconds())
		ours, list, write = append(ours, (l+w).Seconds()*1e3), append(list, l.Seconds()*1e3),
			append(write, w.Seconds()*1e3)
	}
	s.add("T1", "a table of the 10,000 tools of a server, from its start, against its start and the bytes of its list",
		"ratio", ratio)
	s.add("T1.cpu", "the same: CPU of both processes", "ratio", cpu)
	s.add("T1.first", "the same of a server that is new, whose tools are pinned", "ratio", fresh)
	s.add("T1.ours", "a table of the 10,000 tools of a server, from its start", "ms", ours)
	s.add("T1.ours.list", "of that until the tools are there", "ms", list)
	s.add("T1.ours.write", "of that the table", "ms", write)
	s.add("T1.bytes", "start of the server and the bytes of its list, unread", "ms", floor)
	return nil
}

// toolTable opens a host with the server and writes the table of its tools.
func (s *session) toolTable(dir string, n int) (list, write time.Duration, err error) {
	cfg := &config.Config{Servers: map[string]servers.Config{"many": {Command: s.exe,
		Args: []string{"child", "server", tableServer + strconv.Itoa(n)}}}}
	runtime.GC()                       // garbage of the last round
	defer garbage.Late(os.LookupEnv)() // as in main
	begun := time.Now()
	h, err := host.Open(s.ctx, host.Config{Config: cfg, Home: dir, RefreshTools: true, LookupEnv: os.LookupEnv})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	snapshot, problems, err := h.Tools().Snapshot(s.ctx)
	list = time.Since(begun)
	if len(problems) > 0 {
		err = errors.Join(err, problems[0].Err)
	}
	if err != nil {
		return 0, 0, err
	}
	begun = time.Now()
	rows := make([]table.Row, len(snapshot.Tools()))
	for i, t := range snapshot.Tools() {
		rows[i] = table.Row{ID: "Row" + strconv.Itoa(i), Tool: &table.Tool{Kind: table.MCP, Name: t.Name,
			Description: t.Description, Parameters: string(t.Input),
			Message: -1, Remote: t.Remote, Server: table.ServerURI(t.Server)}}
	}
	if len(rows) != n {
		return 0, 0, fmt.Errorf("%d tools of %d", len(rows), n)
	}
	err = table.WriteTools(s.ctx, filepath.Join(dir, "tools.arrow"), rows, table.WriteOptions{})
	return list, time.Since(begun), err
}

// bareList starts the server, initializes it, requests the list and reads its bytes.
func bareList(ctx context.Context, exe string, n int) (took time.Duration, err error) {
	runtime.GC()
	begun := time.Now()
	cmd := exec.CommandContext(ctx, exe, "child", "server", tableServer+strconv.Itoa(n))
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	lines := bufio.NewReaderSize(out, 64<<10)
	size := 0
	for _, ask := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + mcp.LatestLegacy +
			`","capabilities":{},"clientInfo":{"name":"figures","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	} {
		if _, err := io.WriteString(in, ask+"\n"); err != nil {
			return 0, err
		}
		size = 0
		for {
			part, err := lines.ReadSlice('\n')
			size += len(part)
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return 0, err
			}
		}
	}
	took = time.Since(begun)
	want := 0
	for _, t := range listDefinitions(n) {
		want += len(t.Definition)
	}
	if size < want {
		return 0, fmt.Errorf("%d bytes of at least %d", size, want)
	}
	return took, nil
}
