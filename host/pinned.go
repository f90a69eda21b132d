package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// pinnedServers describes the configured servers to package pins.
type pinnedServers struct{ host *Host }

// HasPins reports whether the tools of a server are pinned. Servers of Go programs, tables, the command line and
// cassettes have no pins.
func (p pinnedServers) HasPins(server string) bool {
	_, configured := p.host.config.Servers[server]
	return configured && p.host.config.Policy.Pins.Changed != policy.PinsOff &&
		!config.IsTarget(p.host.serverID(server)) &&
		p.host.connections()[server] != nil && p.host.cfg.Replay == ""
}

// PinKeys returns the server's identity, which earlier releases did not use as the key. Several configuration files in
// one folder share a store, so the keys of other files than tenon.yaml have the file's name.
func (p pinnedServers) PinKeys(server string) (key, old string) {
	key, old = p.host.serverID(server), server
	base := filepath.Base(p.host.config.Path)
	if p.host.config.Path == "" || base == "tenon.yaml" {
		return key, old
	}
	if p.host.config.Layer("servers."+server) == config.LayerProject {
		key = base + "/" + key
	}
	return key, base + ":" + server
}

// Tools returns the tools that a configured server has now.
func (p pinnedServers) Tools(ctx context.Context, server string) ([]tenon.Tool, error) {
	s := p.host.connections()[server]
	if _, configured := p.host.config.Servers[server]; s == nil || !configured {
		return nil, tenon.Errorf(tenon.CodeNotFound,
			"there is no server '%s' whose tools could be pinned; servers: %s", server,
			strings.Join(slices.Sorted(maps.Keys(p.host.config.Servers)), ", "))
	}
	return s.Now(ctx)
}

// Definition returns what a server starts or calls. It omits possible secrets, which are the values of variables and
// headers, and keeps references to the environment as they are written.
func (p pinnedServers) Definition(server string) json.RawMessage {
	c := p.host.config.Servers[server].WithDefaults()
	path := "servers." + server + "."
	written := func(key, value string) string {
		if w := p.host.config.Written(path + key); strings.Contains(w, "${") {
			return w
		}
		return value
	}
	d := map[string]any{"transport": c.Transport}
	if c.Transport == servers.TransportStdio {
		args := make([]string, len(c.Args))
		for i, a := range c.Args {
			args[i] = written(fmt.Sprintf("args[%d]", i), a)
		}
		d["command"], d["args"], d["env"] = written("command", c.Command), args, slices.Sorted(maps.Keys(c.Env))
	} else {
		d["url"], d["headers"], d["auth"] = written("url",
			p.host.connections()[server].Status().Target), slices.Sorted(maps.Keys(c.Headers)), c.Auth.Type
	}
	return tenon.EventData(d)
}

// openPins prepares the pins in the host's store.
func (h *Host) openPins() {
	h.pins = pins.New(pins.Config{Store: h.store, Servers: pinnedServers{h}, Rules: h.config.Policy.Pins, Now: h.now})
}

// ForgetPins removes the pins of a server in the store of a host that is not open, if the store exists. A person who
// rewrites the entry of a server accepts the new entry.
func ForgetPins(ctx context.Context, cfg Config, server string) error {
	path, _ := cfg.storePath()
	if _, err := os.Stat(path); !cfg.isPostgres() && (path == "" || err != nil) {
		return nil // the store has no pins
	}
	h, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	if err = h.pins.Forget(ctx, server); tenon.ErrorCode(err) == tenon.CodeNotFound {
		err = nil
	}
	return errors.Join(err, h.Close())
}

// withhold remembers why tools of a server are not offered. A process that serves logs it once per reason.
func (h *Host) withhold(server string, err error) {
	if before, ok := h.withheld.Swap(server, err.Error()); (!ok || before != err.Error()) && !h.cfg.ShortLived {
		h.log.Warn(err.Error(), "server", server)
	}
}

// withheldError returns why tools of a server are not offered, or nil.
func (h *Host) withheldError(server string) *tenon.Error {
	if why, ok := h.withheld.Load(server); ok {
		return tenon.Errorf(tenon.CodeWaiting, "%s", why)
	}
	return nil
}
