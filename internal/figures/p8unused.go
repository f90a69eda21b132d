package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// unusedServers is the number of configured servers in P8.unused.
const unusedServers = 50

// measureUnused counts the processes of configured but unused servers. Meanwhile tenon serve lists the
// servers and answers a question without them.
func measureUnused(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	var all []float64
	for range s.rounds {
		n, err := s.unusedRound(tenon)
		if err != nil {
			return err
		}
		all = append(all, float64(n))
	}
	s.add("P8.unused", "processes of 50 configured servers that nobody uses", "", all)
	return nil
}

func (s *session) unusedRound(tenon string) (n int, err error) {
	model, stopModel, err := s.startModel(0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stopModel()) }()
	dir, err := os.MkdirTemp(s.tmp, "unused-")
	if err != nil {
		return 0, err
	}
	unused := map[string]any{}
	for i := range unusedServers {
		unused["s"+strconv.Itoa(i)] = map[string]any{"command": s.exe, "args": []string{"child", "server", ours}}
	}
	h, err := s.startServe(tenon, dir, served(model, unused))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	c := &asker{client: &http.Client{Transport: &http.Transport{}}, token: h.token, ctx: ctx}
	defer c.client.CloseIdleConnections()
	if err := c.chat(h.url); err != nil {
		return 0, err
	}
	res, err := c.send(http.MethodGet, h.url+"/api/v1/servers", nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	list, err := io.ReadAll(res.Body)
	if err == nil && strings.Count(string(list), `"state"`) < unusedServers {
		err = fmt.Errorf("%s lists fewer than %d servers: %.300q", h.url, unusedServers, list)
	}
	if err != nil {
		return 0, err
	}
	return h.children()
}

// children returns the number of running child processes.
func (p *serveProcess) children() (n int, err error) {
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "task", "*", "children"))
	if err == nil && len(lists) == 0 {
		err = errors.New("the children of a process are not available on this system")
	}
	for _, l := range lists {
		b, rerr := os.ReadFile(l)
		if rerr != nil {
			return 0, rerr
		}
		n += len(strings.Fields(string(b)))
	}
	return n, err
}
