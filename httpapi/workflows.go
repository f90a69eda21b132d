package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// TableInput is a table for an input of a workflow: its Arrow bytes, or one that is here
// already, in a file or of a run.
type TableInput struct {
	Data  []byte `json:"data,omitempty"`  // an Arrow file or stream, in base64
	File  string `json:"file,omitempty"`  // an id of GET /api/v1/tables; for the owner alone
	Run   string `json:"run,omitempty"`   // with Table: a table of a run
	Table string `json:"table,omitempty"` // its digest
}

// WorkflowRunRequest is the body of POST /api/v1/workflows/{name}/run.
type WorkflowRunRequest struct {
	Parameters json.RawMessage       `json:"parameters,omitempty"` // an object
	Inputs     map[string]TableInput `json:"inputs,omitempty"`     // by port
}

func (c *call) workflows() error { return c.answer(http.StatusOK, items(c.h.WorkflowViews())) }

func (c *call) workflow() error {
	for _, w := range c.h.WorkflowViews() {
		if w.Tool == c.req.PathValue("name") {
			return c.answer(http.StatusOK, w)
		}
	}
	return noWorkflow(c.req.PathValue("name"))
}

func noWorkflow(name string) error {
	return tenon.Errorf(tenon.CodeNotFound, "there is no workflow '%s'", tenon.Visible(name))
}

// runWorkflow begins a run of a workflow. To begin it is the caller's consent to it; what
// its steps do goes through the rules.
func (c *call) runWorkflow() error {
	var r WorkflowRunRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	w, ok := c.h.Workflow(c.req.PathValue("name"))
	if !ok || w.Foreign {
		return noWorkflow(c.req.PathValue("name"))
	}
	inputs := map[string][]byte{}
	for port, in := range r.Inputs {
		data, err := c.tableInput(in)
		if err != nil {
			return tenon.Errorf(tenon.ErrorCode(err), "input '%s': %w", tenon.Visible(port), err)
		}
		inputs[port] = data
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	run, err := c.h.StartWorkflow(c.ctx(), host.WorkflowCall{Workflow: w, Params: r.Parameters, Inputs: inputs, Principal: c.caller.Principal, Credentials: c.brought})
	if err != nil {
		return err
	}
	c.h.Logger().Info("run "+run.ID+" begins", "run", run.ID, "title", run.Title, "principal", string(run.Principal))
	c.w.Header().Set("Location", prefix+"/runs/"+run.ID)
	return c.answer(http.StatusAccepted, StartResponse{Run: run})
}

// tableInput finds the bytes of a table.
func (c *call) tableInput(in TableInput) ([]byte, error) {
	switch {
	case len(in.Data) > 0 && in.File == "" && in.Run == "":
		return in.Data, nil
	case in.File != "" && len(in.Data) == 0 && in.Run == "":
		if !c.caller.Owner {
			return nil, tenon.Errorf(tenon.CodeDenied, "only the owner of this tenon may name a file")
		}
		return c.h.TableBytes(in.File)
	case in.Run != "" && len(in.Data) == 0 && in.File == "":
		run, err := c.runOf(in.Run)
		if err != nil {
			return nil, err
		}
		return c.h.RunTableBytes(c.ctx(), run.ID, in.Table)
	}
	return nil, tenon.Errorf(tenon.CodeInvalid, "name one of data, file, and run with table")
}

// runFlow is the workflow of a run, as the run has it.
func (c *call) runFlow() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	w, err := c.h.RunWorkflowView(c.ctx(), run.ID)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, w)
}

// replay folds the journal of a run again and compares; nothing is carried out.
func (c *call) replay() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	run, err := c.run()
	if err != nil {
		return err
	}
	r, err := c.h.Replay(c.ctx(), run.ID)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, r)
}
