package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/internal/figures/floor"
	"github.com/tenonhq/tenon/mcp"
)

// Further kinds of paths, of P3.durable.
const (
	pathDurable = "durable" // tenon serve in between; a budget counts each call, so its run is stored first
	pathCommits = "commits" // no MCP: the bytes that such a call stores, in as many bare commits
)

// measureDurable compares a call that is stored before it is sent with the bare commits of its bytes.
func measureDurable(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	o, err := s.paths(tenon, mcp.Modern, 0, pathDurable, pathCommits)
	if err != nil {
		return err
	}
	s.add("P3.durable", "gateway: whole p50 of a call that a budget counts, against bare commits of its bytes", "ratio",
		ratios(o[pathDurable].p50, o[pathCommits].p50))
	s.add("P3.durable.ours", "gateway: p50 of a call that a budget counts", "µs", o[pathDurable].p50)
	s.add("P3.durable.commits", "bare commits of its bytes: p50", "µs", o[pathCommits].p50)
	return nil
}

// commitsPeer makes the commits of one call.
type commitsPeer struct {
	rows [][]byte
	file *floor.Commits
	dir  string
}

// runCommits learns from a call through tenon serve which commits a call makes, and then serves their floor.
func runCommits(ctx context.Context, protocol, program string) error {
	c := &commitsPeer{}
	var err error
	if c.rows, err = storedRows(ctx, protocol, program); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "tenon-figures-commits-"); err != nil {
		return err
	}
	if c.file, err = floor.OpenCommits(ctx, filepath.Join(c.dir, "bare.db")); err != nil {
		return errors.Join(err, os.RemoveAll(c.dir))
	}
	return errors.Join(bench.Serve(ctx, os.Stdin, os.Stdout, c), c.Close())
}

// storedRows returns what the store has written for a call: one row of events for each commit.
func storedRows(ctx context.Context, protocol, program string) (rows [][]byte, err error) {
	p := &pathPeer{}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.open(ctx, pathDurable, protocol, program); err != nil {
		return nil, err
	}
	if _, err := p.Call(ctx, bench.EchoTool, bench.Payload); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.dir, ".tenon", "tenon.db"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	found, err := db.QueryContext(ctx, "SELECT events FROM events WHERE chapter = (SELECT max(chapter) FROM events)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var data []byte
		if err := found.Scan(&data); err != nil {
			return nil, err
		}
		rows = append(rows, data)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the store has no events")
	}
	return rows, found.Err()
}

// Call implements [bench.Peer].
func (c *commitsPeer) Call(ctx context.Context, tool, text string) (string, error) {
	if tool == bench.StatTool {
		return bench.Answer(tool, text)
	}
	for _, data := range c.rows {
		if err := c.file.One(ctx, data); err != nil {
			return "", err
		}
	}
	return text, nil
}

// Close implements [bench.Peer].
func (c *commitsPeer) Close() error { return errors.Join(c.file.Close(), os.RemoveAll(c.dir)) }

var _ bench.Peer = (*commitsPeer)(nil)
