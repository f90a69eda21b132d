package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// TableInput is a table for an input port of a workflow: uploaded Arrow bytes, a file, or a table of a run.
type TableInput struct {
	Data  []byte `json:"data,omitempty"`  // an Arrow file or stream, in base64
	File  string `json:"file,omitempty"`  // an id of GET /api/v1/tables; only for the owner
	Run   string `json:"run,omitempty"`   // the run that has the table
	Table string `json:"table,omitempty"` // the digest of the run's table
}

// WorkflowRunRequest is the body of POST /api/v1/workflows/{name}/run.
type WorkflowRunRequest struct {
	Parameters json.RawMessage       `json:"parameters,omitempty"` // an object
	Inputs     map[string]TableInput `json:"inputs,omitempty"`     // by port
}

func (c *call) workflows() error {
	list, err := c.h.Workflows().List(c.ctx())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

func (c *call) workflow() error {
	list, err := c.h.Workflows().List(c.ctx())
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.Tool == c.req.PathValue("name") {
			return c.answer(http.StatusOK, w)
		}
	}
	return noWorkflow(c.req.PathValue("name"))
}

// schedules answers with the schedules. Their runs belong to the owner, and their questions are in the configuration.
func (c *call) schedules() error {
	list, err := c.h.Workflows().Schedules().List(c.ctx())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

func noWorkflow(name string) error {
	return tenon.Errorf(tenon.CodeNotFound, "there is no workflow '%s'", tenon.Visible(name))
}

// runWorkflow starts a run of a workflow. The request counts as approval of the workflow itself. The rules still apply
// to each of its steps.
func (c *call) runWorkflow() error {
	var r WorkflowRunRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	w, err := c.h.Workflows().Get(c.ctx(), c.req.PathValue("name"))
	if err != nil || w.Foreign {
		return noWorkflow(c.req.PathValue("name"))
	}
	inputs := map[string]*io.SectionReader{}
	for port, in := range r.Inputs {
		t, err := c.tableInput(in)
		if err != nil {
			return tenon.Errorf(tenon.ErrorCode(err), "input '%s': %w", tenon.Visible(port), err)
		}
		defer t.Close() //nolint:errcheck // it was only read
		inputs[port] = t.SectionReader
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	run, err := c.h.Workflows().Start(c.ctx(), host.WorkflowCall{Workflow: w, Params: r.Parameters, Files: inputs,
		Principal: c.caller.Principal, Credentials: c.brought})
	if err != nil {
		return err
	}
	c.h.Service().Info().Logger.Info("run "+run.ID+" begins",
		"run", run.ID, "title", run.Title, "principal", string(run.Principal))
	c.w.Header().Set("Location", prefix+"/runs/"+run.ID)
	return c.answer(http.StatusAccepted, StartResponse{Run: run})
}

// tableInput opens a table.
func (c *call) tableInput(in TableInput) (*host.TableReader, error) {
	switch {
	case len(in.Data) > 0 && in.File == "" && in.Run == "":
		return host.NewTableReader(io.NewSectionReader(bytes.NewReader(in.Data), 0, int64(len(in.Data))), nil), nil
	case in.File != "" && len(in.Data) == 0 && in.Run == "":
		if !c.caller.Owner {
			return nil, tenon.Errorf(tenon.CodeDenied, "only the owner of this tenon may name a file")
		}
		return c.h.Tables().OpenTable(c.ctx(), in.File)
	case in.Run != "" && len(in.Data) == 0 && in.File == "":
		run, err := c.runOf(in.Run)
		if err != nil {
			return nil, err
		}
		return c.h.Runs().Open(run.ID).Data().OpenTable(c.ctx(), in.Table)
	}
	return nil, tenon.Errorf(tenon.CodeInvalid, "name one of data, file, and run with table")
}

// runFlow sends the workflow of a run, in the version that the run uses.
func (c *call) runFlow() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	w, err := c.h.Runs().Open(run.ID).Data().Workflow(c.ctx())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, w)
}

// replay folds the journal of a run again and compares the result with the stored events. It does not execute anything.
func (c *call) replay() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	run, err := c.run()
	if err != nil {
		return err
	}
	r, err := c.h.Runs().Open(run.ID).Replay(c.ctx())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, r)
}
