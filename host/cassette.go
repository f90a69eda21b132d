package host

import (
	"encoding/json"
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/record"
)

// byCassette is who the journal names for an answer that a replay gave.
const byCassette = "cassette"

// cassette is what a host records to or replays from. The zero value does neither.
type cassette struct {
	recorder *record.Recorder // nil: not recording
	player   *record.Player   // nil: not replaying
}

// openCassette opens what the host's config names.
func (h *Host) openCassette() (err error) {
	if h.cfg.Record != "" && h.cfg.Replay != "" {
		return tenon.Errorf(tenon.CodeInvalid, "a cassette is either recorded or replayed, not both")
	}
	if h.cfg.Record != "" {
		h.cassette.recorder, err = record.NewRecorder(record.Config{Dir: h.cfg.Record, Redactor: h.redactor, Resumed: h.cfg.Resumed})
	}
	if h.cfg.Replay != "" {
		h.cassette.player, err = record.NewPlayer(record.Config{Dir: h.cfg.Replay, Redactor: h.redactor, Resumed: h.cfg.Resumed})
	}
	return err
}

// close says whether the cassette is whole, or was played to its end.
func (c cassette) close() error {
	switch {
	case c.recorder != nil:
		return c.recorder.Close()
	case c.player != nil:
		return c.player.Close()
	}
	return nil
}

// model puts the cassette around a model that has no HTTP.
func (c cassette) model(own tenon.Model) tenon.Model {
	switch {
	case c.recorder != nil:
		return c.recorder.Model(own)
	case c.player != nil:
		return c.player.Model(own.Name())
	}
	return own
}

// transport carries the requests of models over HTTP, through the cassette.
func (c cassette) transport() http.RoundTripper {
	switch {
	case c.recorder != nil:
		return c.recorder.Transport(model.NewTransport())
	case c.player != nil:
		return c.player.Transport()
	}
	return nil // the adapter's own
}

// playsServers reports whether servers are replayed: cassettes of older versions hold
// models alone.
func (c cassette) playsServers() bool { return c.player != nil && c.player.HoldsServers() }

// toolset puts the cassette around what reaches a server.
func (c cassette) toolset(name string, own tenon.Toolset) tenon.Toolset {
	switch {
	case c.recorder != nil:
		return c.recorder.Toolset(name, own)
	case c.playsServers():
		return c.player.Toolset(name)
	}
	return own
}

// offers puts the cassette around what a server has beside tools.
func (c cassette) offers(name string, own record.Offers) record.Offers {
	switch {
	case c.recorder != nil:
		return c.recorder.Offers(name, own)
	case c.playsServers():
		return c.player.Offers(name)
	}
	return own
}

// wrapped is a toolset with what stands around it: the cassette, then the caller's own.
func (h *Host) wrapped(name string, own tenon.Toolset) tenon.Toolset {
	t := h.cassette.toolset(name, own)
	if h.cfg.Wrap == nil {
		return t
	}
	if w := h.cfg.Wrap(name, t); w != nil {
		t = newOwnTools(name, w, h.log)
	}
	return t
}

// replayed answers what a server asks for as it was answered when the cassette was
// recorded. False: this is no replay, or nothing like it was recorded.
func (q *questioner) replayed(method string, params json.RawMessage) (json.RawMessage, bool, error) {
	if !q.h.cassette.playsServers() {
		return nil, false, nil
	}
	answer, ok, err := q.h.cassette.player.Answer(q.command.Server, method, params)
	if ok && err == nil && len(answer) == 0 {
		answer = json.RawMessage(`{"action":"cancel"}`)
	}
	return answer, ok, err
}

// wasSampled reports whether this is a replay, and the model answered the server when
// it was recorded.
func (q *questioner) wasSampled(params json.RawMessage) bool {
	_, ok, err := q.replayed(agent.MethodSample, params)
	return ok && err == nil
}

// byReplay is the answer of a cassette to a single question.
func byReplay(result json.RawMessage) *agent.Answer {
	return &agent.Answer{By: byCassette, InputAnswer: live(result)}
}
