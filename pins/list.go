package pins

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// The states of a [State].
const (
	Same    = "pinned"  // equal to its pin
	Changed = "changed" // differs from its pin, and is not used until it is accepted
	Added   = "new"     // has no pin
	Gone    = "gone"    // the server no longer has it
)

// State is the result of comparing a tool with its pin. If Remote is empty, it is the result for the server itself.
type State struct {
	Server  string    `json:"server"`
	Remote  string    `json:"remote_name"`
	State   string    `json:"state"`
	Blocked string    `json:"blocked,omitempty"` // reason why the tool is not offered
	By      string    `json:"by,omitempty"`      // who pinned it
	Created time.Time `json:"created,omitzero"`
	Changes []Change  `json:"changes,omitempty"`
}

// Change is a changed field of a definition. Before and After are JSON, or empty if the field was added or removed.
type Change struct {
	Path   string          `json:"path"` // JSON pointer; if empty, the whole definition
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// List compares a server with its pins: first the server, then its tools by name. It pins nothing. Errors: not_found,
// and errors of connecting.
func (p *Pins) List(ctx context.Context, server string) ([]State, error) {
	v, err := p.snapshot(ctx, server)
	if err != nil {
		return nil, err
	}
	var list []State
	for _, name := range v.names {
		d, has := v.now[name]
		pin, was := v.kept[name]
		s := State{Server: server, Remote: name, State: Same, Blocked: v.changed[name], By: pin.By,
			Created: pin.Created}
		switch {
		case !was:
			s.State, s.Changes = Added, []Change{{After: d.json}}
		case !has:
			s.State = Gone
		case pin.Digest != d.digest:
			s.State = Changed
			before, err := p.cfg.Store.Pin(ctx, v.key, name)
			if err != nil {
				return nil, err
			}
			s.Changes = differences(before.Definition, d.json)
		}
		list = append(list, s)
	}
	return list, nil
}

// Accept replaces pins by the current definitions of one tool. If remote is empty, it does so for the server and all
// its tools, and removes the pins of tools that are gone. It returns the accepted changes. If seen is not nil, it must
// equal the current differences. Errors: not_found, conflict (seen differs), and errors of connecting.
func (p *Pins) Accept(ctx context.Context, server, remote, by string, seen []State) ([]State, error) {
	list, err := p.List(ctx, server)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s State) bool { return s.State == Same || remote != "" && s.Remote != remote })
	if seen != nil && !slices.EqualFunc(seen, list, func(a, b State) bool {
		return bytes.Equal(tenon.EventData(a),
			tenon.EventData(b))
	}) {
		return nil, tenon.Errorf(tenon.CodeConflict,
			"server '%s' has changed again in the meantime; look at it once more", server)
	}
	v, err := p.snapshot(ctx, server)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, nil
	}
	var accepted []State
	var put []store.Pin
	var gone []string
	for _, s := range list {
		d, has := v.now[s.Remote]
		accepted = append(accepted, s)
		if !has {
			gone = append(gone, s.Remote)
			continue
		}
		pin := p.pin(v.key, d, "")
		pin.By = by
		put = append(put, pin)
	}
	if len(put) > 0 {
		err = p.cfg.Store.PutPins(ctx, put, false)
	}
	if err == nil && len(gone) > 0 {
		// Delete the pins last. As long as a name is pinned, another tool with this name counts as a change.
		if err = p.cfg.Store.DeletePins(ctx, v.key, gone...); tenon.ErrorCode(err) == tenon.CodeNotFound {
			err = nil // another process was faster
		}
	}
	return accepted, err
}

// Forget removes the pins of a server, so that its next use counts as the first one. Errors: not_found, store.
func (p *Pins) Forget(ctx context.Context, server string) error {
	key, old := p.cfg.Servers.PinKeys(server)
	err := p.cfg.Store.DeletePins(ctx, key)
	oldErr := p.cfg.Store.DeletePins(ctx, old)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		err = oldErr
	}
	p.mu.Lock()
	delete(p.seen, server)
	p.mu.Unlock()
	return err
}

// snapshot is a server's current definitions and its pins.
type snapshot struct {
	key     string
	names   []string // sorted, of definitions and pins; "" is the server
	now     map[string]definition
	kept    map[string]store.Pin
	changed map[string]string
}

func (p *Pins) snapshot(ctx context.Context, server string) (*snapshot, error) {
	tools, err := p.cfg.Servers.Tools(ctx, server)
	if err != nil {
		return nil, err
	}
	v := &snapshot{}
	v.key, _ = p.cfg.Servers.PinKeys(server)
	own, err := define("", p.cfg.Servers.Definition(server))
	if err != nil {
		return nil, err
	}
	if v.now, err = definitionsNow(own, tools); err != nil {
		return nil, err
	}
	if v.kept, err = p.pinsOf(ctx, server); err != nil {
		return nil, err
	}
	gone, err := p.gone(ctx, v.key, v.now, v.kept)
	if err != nil {
		return nil, err
	}
	v.changed = changes(v.now, v.kept, gone)
	both := maps.Clone(v.now)
	for name := range v.kept {
		both[name] = definition{}
	}
	v.names = slices.Sorted(maps.Keys(both))
	return v, nil
}

// maxChanges bounds the reported changes of one definition.
const maxChanges = 100

// differences lists the changes between two canonical definitions.
func differences(before, after json.RawMessage) []Change {
	var list []Change
	compare("", numbered(before), numbered(after), &list, 0)
	return list
}

func compare(path string, a, b any, list *[]Change, depth int) {
	if len(*list) >= maxChanges || bytes.Equal(tenon.EventData(a), tenon.EventData(b)) {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || depth > maxSets {
			break
		}
		both := maps.Clone(x)
		maps.Copy(both, y)
		for _, k := range slices.Sorted(maps.Keys(both)) {
			at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
			one, was := x[k]
			other, is := y[k]
			if was && is {
				compare(at, one, other, list, depth+1)
			} else {
				*list = append(*list, change(at, one, was, other, is))
			}
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) || depth > maxSets {
			break
		}
		for i := range x {
			compare(fmt.Sprintf("%s/%d", path, i), x[i], y[i], list, depth+1)
		}
		return
	}
	*list = append(*list, change(path, a, true, b, true))
}

func change(path string, a any, was bool, b any, is bool) Change {
	c := Change{Path: path}
	if was {
		c.Before = tenon.EventData(a)
	}
	if is {
		c.After = tenon.EventData(b)
	}
	return c
}
