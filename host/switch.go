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
	"strings"
	"syscall"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/wholefile"
	"github.com/tenonhq/tenon/servers"
)

// switchesFile is the file, in the folder of files about servers, that lists the servers which a person disabled.
const switchesFile = "switches.json"

// switches is the content of this file.
type switches struct {
	Disabled []string `json:"disabled"`
}

// readSwitches applies the choices of earlier processes. An unreadable file is an error: a disabled server must not
// start by itself.
func (h *Host) readSwitches() error {
	h.serverPool.switching.Lock()
	defer h.serverPool.switching.Unlock()
	s, err := h.switches()
	if err != nil || h.cfg.serversPath() == "" {
		return err
	}
	for name, server := range h.connections() { // including servers of the previous host
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
		return s, nil // if the folder is a file, opening the store reports it
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, tenon.Errorf(tenon.CodeStore, "the list of disabled servers cannot be read from %s: %w; correct the "+
			"file or remove it", path, err)
	}
	return s, nil
}

func (h serversHandle) Switch(_ context.Context, name string, on bool) (servers.Status, error) {
	server, err := h.host.server(name)
	if err != nil {
		return servers.Status{}, err
	}
	h.host.serverPool.switching.Lock()
	defer h.host.serverPool.switching.Unlock()
	if err := h.host.keepSwitch(name, on); err != nil {
		return servers.Status{}, err
	}
	server.Switch(on)
	word := "disabled"
	if on {
		word = "enabled"
	}
	h.host.log.Info("MCP server "+name+" is "+word, "server", name)
	return server.Status(), nil
}

// keepSwitch stores a choice. The caller holds the lock.
func (h *Host) keepSwitch(name string, on bool) error {
	dir := h.cfg.serversPath()
	if dir == "" {
		return nil // this host keeps no files
	}
	// The file is read again, because another process may have changed it.
	s, err := h.switches()
	if err != nil {
		return err
	}
	s.Disabled = slices.DeleteFunc(s.Disabled, func(n string) bool { return n == name || h.connections()[n] == nil })
	if !on {
		s.Disabled = append(s.Disabled, name)
	}
	slices.Sort(s.Disabled)
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = wholefile.Write(filepath.Join(dir, switchesFile), append(encode(s), '\n'), 0o600)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "the choice for server '%s' cannot be stored: %w", name, err)
	}
	return nil
}

func (h serversHandle) Restart(ctx context.Context, name string) (servers.Status, error) {
	server, err := h.host.reached(name)
	if err != nil {
		return servers.Status{}, err
	}
	err = server.Restart(ctx)
	return server.Status(), err
}

// reached returns a configured server that may be contacted: not in a replay.
func (h *Host) reached(name string) (*servers.Server, error) {
	s, err := h.server(name)
	if err == nil {
		err = h.cassette.reaches(name)
	}
	return s, err
}

// server returns a configured server.
func (h *Host) server(name string) (*servers.Server, error) {
	s, ok := h.connections()[name]
	switch entry, configured := h.config.Servers[name]; {
	case ok:
		return s, nil
	case entry.Elsewhere:
		return nil, &tenon.Error{Code: tenon.CodeInvalid, Message: entry.WhereElse(name)}
	case configured:
		return nil, tenon.Errorf(tenon.CodeInvalid, "server '%s' is not enabled: set servers.%s.enabled to "+
			"true in %s", name, name, h.config.File)
	case h.sets()[name] != nil && !catalog.IsReserved(name):
		return nil, tenon.Errorf(tenon.CodeInvalid, "'%s' is a toolset of the program, not an MCP server: it has no "+
			"connection to switch, restart or read", name)
	}
	return nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", tenon.Visible(name),
		nearest(name, slices.Sorted(maps.Keys(h.config.Servers))))
}

func (h serversHandle) List(context.Context) ([]servers.Status, error) {
	connections, sets := h.host.connections(), h.host.sets()
	list := []servers.Status{}
	for name, entry := range h.host.config.Servers {
		if connections[name] == nil && sets[name] == nil {
			list = append(list, servers.Disabled(name, entry))
		}
	}
	for _, s := range connections {
		st := s.Status()
		if st.Error == nil {
			st.Error = h.host.withheldError(st.Name)
		}
		list = append(list, st)
	}
	for name := range sets {
		if connections[name] == nil && !catalog.IsReserved(name) {
			list = append(list, h.host.toolsetStatus(name))
		}
	}
	slices.SortFunc(list, func(a, b servers.Status) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// toolsetStatus returns the status of a toolset of the program. Its tools are counted once they have been listed.
func (h *Host) toolsetStatus(name string) servers.Status {
	st := servers.Status{Name: name, Transport: servers.TransportProgram, State: servers.StateReady, Tools: -1}
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, ok := h.listings[name]; ok {
		st.Tools = len(last.tools)
	}
	return st
}
