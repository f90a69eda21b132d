package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon/servers"
)

const (
	// changePause is the time in which notifications of changes are collected, because servers send several at a time,
	// and some send them without end.
	changePause = 250 * time.Millisecond
	// changeTime bounds the time to read the lists again after a change.
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

// tell notifies clients about changed lists until there are no more changes.
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

// sees reports whether a list differs from the list that the clients of the door got last. It returns false for a list
// that no client has read.
func (d *door) sees(ctx context.Context, list string) bool {
	d.mu.Lock()
	before, asked := d.seen[list]
	d.mu.Unlock()
	if !asked {
		return false
	}
	if !d.look(ctx, list) {
		return true // the client gets the error when it reads the list
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[list] != before
}

// look reads a list and records its digest. It reports whether it could read the list.
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

// note records the digest of a list as clients get it. part distinguishes the two lists of resources.
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

// noteSum is note for a digest that is known already.
func (d *door) noteSum(list, part, sum string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen, d.parts = map[string]string{}, map[string]string{}
	}
	d.parts[part] = sum
	d.seen[list] = d.parts[list] + d.parts[list+"/templates"]
}
