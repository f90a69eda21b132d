package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon/servers"
)

const (
	// changePause collects changes: servers report several at a time, and some report them without end.
	changePause = 250 * time.Millisecond
	// changeTime bounds the time to read the lists again.
	changeTime = 30 * time.Second
)

// Notice takes a notification of a server; see [host.Config.Notify]. If a list changed, the clients that see the change
// are notified, each at most once in a quarter of a second. It does not block.
func (g *Gateway) Notice(n servers.Notification) {
	list := mentionsList(n)
	if list == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Err() != nil {
		return
	}
	first := len(g.changed) == 0
	if g.changed == nil {
		g.changed = map[string]bool{}
	}
	g.changed[list] = true
	if first && !g.telling {
		g.telling = true
		g.calls.Go(g.tell)
	}
}

// tell tells clients about changes until there are none.
func (g *Gateway) tell() {
	for {
		select {
		case <-time.After(changePause):
		case <-g.closed.Done():
		}
		g.mu.Lock()
		lists := g.changed
		g.changed = nil
		g.telling = len(lists) > 0 && g.closed.Err() == nil
		if !g.telling {
			g.mu.Unlock()
			return
		}
		var doors []*door
		for _, d := range g.doors {
			doors = append(doors, d)
		}
		g.mu.Unlock()
		ctx, cancel := context.WithTimeout(g.closed, changeTime)
		for _, d := range doors {
			for list := range lists {
				if d.sees(ctx, list) {
					d.server.ListChanged(list)
				}
			}
		}
		cancel()
	}
}

// sees reports whether a list differs from the one that the clients of the door last got. A list that nobody asked for
// has not changed for them.
func (d *door) sees(ctx context.Context, list string) bool {
	d.mu.Lock()
	before, asked := d.seen[list]
	d.mu.Unlock()
	if !asked {
		return false
	}
	if !d.look(ctx, list) {
		return true // the client learns why
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[list] != before
}

// look reads a list and notes it. It reports whether it could.
func (d *door) look(ctx context.Context, list string) bool {
	var err error
	switch list {
	case "tools":
		_, err = searching{d}.List(ctx)
	case "prompts":
		_, err = d.offers(ctx, "prompts/list", nil)
	case "resources":
		if _, err = d.offers(ctx, "resources/list", nil); err == nil {
			_, err = d.offers(ctx, "resources/templates/list", nil)
		}
	}
	return err == nil
}

// note notes a list as clients get it. Part distinguishes the two lists of resources.
func (d *door) note(list, part string, items []json.RawMessage) {
	d.noteSum(list, part, digestOf(items))
}

// digestOf returns the digest of the items of a list.
func digestOf(items []json.RawMessage) string {
	sum := sha256.New()
	for _, item := range items {
		sum.Write(item)
		sum.Write([]byte{0})
	}
	return string(sum.Sum(nil))
}

// noteSum is note with the digest of the items.
func (d *door) noteSum(list, part, sum string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen, d.parts = map[string]string{}, map[string]string{}
	}
	d.parts[part] = sum
	d.seen[list] = d.parts[list] + d.parts[list+"/templates"]
}
