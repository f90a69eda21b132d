package host

import (
	"context"
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/record"
)

// cassette is the recording that a host writes or replays. The zero value does neither.
type cassette struct {
	recorder *record.Recorder // nil: not recording
	player   *record.Player   // nil: not replaying
}

// openCassette opens the cassettes of the host's config.
func (h *Host) openCassette() (err error) {
	if h.cfg.Record != "" && h.cfg.Replay != "" {
		return tenon.Errorf(tenon.CodeInvalid, "a cassette is either recorded or replayed, not both")
	}
	if h.cfg.Record != "" {
		h.cassette.recorder, err = record.NewRecorder(record.Config{Dir: h.cfg.Record, Redactor: h.redactor,
			Resumed: h.cfg.Resumed, Logger: h.log})
	}
	if h.cfg.Replay != "" {
		h.cassette.player, err = record.NewPlayer(record.Config{Dir: h.cfg.Replay, Redactor: h.redactor,
			Resumed: h.cfg.Resumed, Secrets: func() { h.registerReadable(context.Background()) }})
	}
	return err
}

// registerReadable registers the configured secrets that can be read without a program and without a question. A
// recording needs them before its first exchange, when a server that has not started yet has not registered its own. A
// replay starts no server. A secret of a program is registered when it is used, so that no program starts twice. The
// secrets of a project that is not trusted are not read.
func (h *Host) registerReadable(ctx context.Context) {
	if h.cfg.Untrusted {
		return
	}
	for _, v := range h.config.QuietSecrets(ctx) {
		h.redactor.Add(v)
	}
}

// close returns an error if the recording is incomplete or was not replayed to its end.
func (c cassette) close() error {
	switch {
	case c.recorder != nil:
		return c.recorder.Close()
	case c.player != nil:
		return c.player.Close()
	}
	return nil
}

// model puts the cassette around a model that does not use HTTP.
func (c cassette) model(own tenon.Model) tenon.Model {
	switch {
	case c.recorder != nil:
		return c.recorder.Model(own)
	case c.player != nil:
		return c.player.Model(own.Name())
	}
	return own
}

// transport returns the HTTP transport of models, with the cassette around it.
func (c cassette) transport() http.RoundTripper {
	switch {
	case c.recorder != nil:
		return c.recorder.Transport(model.NewTransport())
	case c.player != nil:
		return c.player.Transport()
	}
	return nil // the adapter uses its default
}

// playsServers reports whether servers are replayed. Cassettes of older versions contain only models.
func (c cassette) playsServers() bool { return c.player != nil && c.player.HoldsServers() }

// reaches returns an error if a cassette answers for the servers, so that none may be contacted.
func (c cassette) reaches(server string) error {
	if !c.playsServers() {
		return nil
	}
	return tenon.Errorf(tenon.CodeInvalid, "a replay has no servers, so server '%s' is not contacted", server)
}

// toolset puts the cassette around a toolset.
func (c cassette) toolset(name string, own tenon.Toolset) tenon.Toolset {
	switch {
	case c.recorder != nil:
		return c.recorder.Toolset(name, own)
	case c.playsServers():
		return c.player.Toolset(name)
	}
	return own
}

// offers puts the cassette around the prompts and resources of a server.
func (c cassette) offers(name string, own record.Offers) record.Offers {
	switch {
	case c.recorder != nil:
		return c.recorder.Offers(name, own)
	case c.playsServers():
		return c.player.Offers(name)
	}
	return own
}

// wrapped returns a toolset with its wrappers: the cassette, then the program's own.
func (h *Host) wrapped(name string, own tenon.Toolset) executor.Toolset {
	t := h.cassette.toolset(name, own)
	set := programSet{}
	if o, ok := own.(*ownTools); ok {
		set.checked = append(set.checked, o)
	}
	if h.cfg.Wrap != nil {
		if w := h.wrap(name, t); w != nil {
			o := newOwnTools(name, w, h.log)
			t, set.checked = o, append(set.checked, o)
		}
	}
	set.Toolset = executor.Plain(t)
	if set.checked == nil {
		return set.Toolset
	}
	return set
}

// programSet is a toolset of the program, or a wrapped one, with the checks of its lists.
type programSet struct {
	executor.Toolset
	checked []*ownTools
}

// callsDirectly reports whether nothing is between the host and its servers: neither a cassette nor a wrapper of the
// program.
func (h *Host) callsDirectly() bool {
	return h.cassette.recorder == nil && !h.cassette.playsServers() && h.cfg.Wrap == nil
}
