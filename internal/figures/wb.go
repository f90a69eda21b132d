package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/tenonhq/tenon/web"
)

// inspectorVersion is the version of MCP Inspector for the comparison of the first paint.
const inspectorVersion = "2.12.0"

// workbenchFigures lists the figures of web/app/figures in the order of the report.
var workbenchFigures = []struct{ id, name, unit string }{
	{"WB.tools", "the tools page with 5,000 tools, searched and scrolled: longest task", "ms"},
	{"WB.run", "the page of a run of 2,000 calls, scrolled: longest task", "ms"},
	{"WB.chat", "the conversation with that run, scrolled: longest task", "ms"},
	{"WB.cpu.tools", "the same tools page: CPU time of the longest task, by Chrome's trace", "ms"},
	{"WB.cpu.run", "the same page of a run: the same", "ms"},
	{"WB.cpu.chat", "the same conversation: the same", "ms"},
	{"WB.scroll.tools", "scrolling 5,000 tools: time between frames, p95", "ms"},
	{"WB.scroll.run", "scrolling the events of 2,000 calls: the same", "ms"},
	{"WB.scroll.chat", "scrolling the conversation: the same", "ms"},
	{"WB.paint", "first contentful paint against MCP Inspector's", "ratio"},
	{"WB.paint.own", "first contentful paint", "ms"},
	{"WB.ready", "the same page, from its request to the field for a question", "ms"},
	{"WB.paint.inspector", "the same of MCP Inspector " + inspectorVersion, "ms"},
}

// measureWB measures the workbench in a real browser: the size of the first page, the longest task of large
// pages, the smoothness of scrolling, and compared with MCP Inspector from npm on the same machine the first paint and
// ten tasks. It needs Node with npm, Chromium, and the packages that `make browser` installs.
func measureWB(s *session) error {
	size, err := web.Files().FirstPage()
	if err != nil {
		return err
	}
	s.add("WB.bundle", "the first page with all its files, compressed", "KiB", []float64{float64(size) / 1024})
	app := filepath.Join(s.root, "web", "app")
	if _, err := os.Stat(filepath.Join(app, "node_modules", "ready")); err != nil {
		return fmt.Errorf("the workbench's packages are missing; make browser installs them: %w", err)
	}
	inspector, err := s.inspector()
	if err != nil {
		return err
	}
	node, err := s.inspectorNode()
	if err != nil {
		return err
	}
	exe, told := filepath.Join(s.tmp, "tenon"), filepath.Join(s.tmp, "workbench.jsonl")
	if err := s.build(exe, "./cmd/tenon"); err != nil {
		return err
	}
	cmd := exec.CommandContext(s.ctx, "npx", "--no-install", "playwright", "test", "-c", "figures.config.ts")
	cmd.Dir, cmd.Stdout, cmd.Stderr = app, os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), "TENON_BIN="+exe, "TENON_FIGURES="+told, "TENON_ROUNDS="+strconv.Itoa(s.rounds),
		"TENON_INSPECTOR="+inspector)
	if node != "" {
		cmd.Env = append(cmd.Env, "TENON_INSPECTOR_NODE="+node)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("playwright: %w", err)
	}
	values, err := readTold(told)
	if err != nil {
		return err
	}
	for _, f := range workbenchFigures {
		if len(values[f.id]) == 0 {
			return fmt.Errorf("%s was not measured", f.id)
		}
		s.add(f.id, f.name, f.unit, values[f.id])
	}
	return s.addTasks(values)
}

// readTold reads the values of a file of lines {"id": …, "value": …}.
func readTold(name string) (map[string][]float64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	values := map[string][]float64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var v struct {
			ID    string
			Value float64
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values[v.ID] = append(values[v.ID], v.Value)
	}
	return values, lines.Err()
}

// inspector returns the folder of MCP Inspector, which is fetched if it is not there.
func (s *session) inspector() (string, error) {
	dir, err := cacheFolder("inspector-" + inspectorVersion)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@modelcontextprotocol", "inspector")); err == nil {
		return dir, nil
	}
	return dir, s.npmInstall(dir, "@modelcontextprotocol/inspector@"+inspectorVersion)
}
