package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/wholefile"
	"github.com/tenonhq/tenon/servers"
)

// switchesFile is the file, beside what else is kept of servers, that says which of
// them a person has switched off.
const switchesFile = "switches.json"

// switches is what that file holds.
type switches struct {
	Disabled []string `json:"disabled"`
}

// readSwitches applies what a person chose in an earlier process. A file that cannot
// be read is an error: a server that was switched off must not start by itself.
func (h *Host) readSwitches() error {
	h.fleet.switching.Lock()
	defer h.fleet.switching.Unlock()
	s, err := h.switches()
	if err != nil || h.cfg.serversPath() == "" {
		return err
	}
	for name, server := range h.Servers() { // also those of the host before
		server.Switch(!slices.Contains(s.Disabled, name))
	}
	return nil
}

// switches reads the file.
func (h *Host) switches() (s switches, err error) {
	dir := h.cfg.serversPath()
	if dir == "" {
		return s, nil
	}
	path := filepath.Join(dir, switchesFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return s, nil // where the folder is a file, opening the store says so
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, tenon.Errorf(tenon.CodeStore, "which servers are switched off cannot be read from %s: %w; mend it or remove it", path, err)
	}
	return s, nil
}

// SwitchServer takes a server out of use for everybody, or into use again. The choice
// outlives the process; it is kept beside the store. Calls that are under way get a
// moment to end. Errors: not_found, invalid (the configuration has it switched off),
// store (the choice was not kept, and nothing changed).
func (h *Host) SwitchServer(name string, on bool) error {
	server, err := h.server(name)
	if err != nil {
		return err
	}
	h.fleet.switching.Lock()
	defer h.fleet.switching.Unlock()
	if err := h.keepSwitch(name, on); err != nil {
		return err
	}
	server.Switch(on)
	word := "disabled"
	if on {
		word = "enabled"
	}
	h.log.Info("MCP server "+name+" is "+word, "server", name)
	return nil
}

// keepSwitch writes a choice down; the caller holds the lock.
func (h *Host) keepSwitch(name string, on bool) error {
	dir := h.cfg.serversPath()
	if dir == "" {
		return nil // nothing of this host is kept
	}
	// The file is read again, because another process may have changed it.
	s, err := h.switches()
	if err != nil {
		return err
	}
	s.Disabled = slices.DeleteFunc(s.Disabled, func(n string) bool { return n == name || h.Servers()[n] == nil })
	if !on {
		s.Disabled = append(s.Disabled, name)
	}
	slices.Sort(s.Disabled)
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = wholefile.Write(filepath.Join(dir, switchesFile), append(encode(s), '\n'), 0o600)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "that server '%s' is switched cannot be kept: %w", name, err)
	}
	return nil
}

// RestartServer gives a server a new connection, and a stdio server a new process.
// Errors: not_found, invalid (it is switched off), and why it cannot be connected.
func (h *Host) RestartServer(ctx context.Context, name string) error {
	server, err := h.server(name)
	if err != nil {
		return err
	}
	return server.Restart(ctx)
}

// server returns a configured server.
func (h *Host) server(name string) (*servers.Server, error) {
	s, ok := h.Servers()[name]
	switch _, configured := h.config.Servers[name]; {
	case ok:
		return s, nil
	case configured:
		return nil, tenon.Errorf(tenon.CodeInvalid, "server '%s' is not enabled: set servers.%s.enabled to true in %s", name, name, h.config.File)
	}
	return nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", tenon.Visible(name), nearest(name, slices.Sorted(maps.Keys(h.config.Servers))))
}

// Statuses returns the state of every configured server by name, those that
// are switched off included. Nothing is started.
func (h *Host) Statuses() []servers.Status {
	list := []servers.Status{}
	for _, name := range slices.Sorted(maps.Keys(h.config.Servers)) {
		if s, ok := h.Servers()[name]; ok {
			list = append(list, s.Status())
		} else {
			list = append(list, servers.Disabled(name, h.config.Servers[name]))
		}
	}
	return list
}
