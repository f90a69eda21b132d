package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

func newPolicy(a *app) *cobra.Command {
	cmd := group("policy", "Rules of tools: which hold, where they are said, what they decide", "policies")
	cmd.AddCommand(newPolicyExplain(a), newPolicyTest(a))
	return cmd
}

func newPolicyExplain(a *app) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "explain TOOL [--agent NAME]",
		Short: "Show each rule that holds for a tool and where it is said",
		Long: "Shows each value of the rules that hold for a tool, and the file and line that says it. The most specific block\n" +
			"wins, value by value: tools.NAME.policy, then agents.NAME.policy, policy.groups.NAME, servers.NAME.policy,\n" +
			"policy.defaults. Conditions of policy.rules stand above approval. TOOL is the name that a model sees, or SERVER.NAME.",
		Example: "  tenon policy explain get_weather\n  tenon policy explain bank.transfer --agent clerk -o json",
		Args:    args(1, 1, "the tool"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.open(cmd.Context(), opening{connect: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			t, err := a.ruledTool(cmd, h, args[0])
			if err != nil {
				return err
			}
			if agent, err = agentOf(h, agent); err != nil {
				return err
			}
			list := h.Config().Explain(t.Server, t.Remote, agent)
			if a.isJSON() {
				return a.printJSON(map[string]any{"server": t.Server, "remote_name": t.Remote, "name": t.Name, "agent": agent, "values": list})
			}
			err = printList(a, list, []string{"key", "value", "said in", "at"}, func(r config.Ruled) []string {
				return []string{r.Key, r.Value, r.From, r.Origin}
			})
			if note := h.Unused(t, agent); err == nil && note != "" {
				a.hint("%s", note)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "`NAME` of the agent that uses the tool (default: default, or the only one)")
	return cmd
}

// ruledTool finds a tool, by its name or as SERVER.NAME.
func (a *app) ruledTool(cmd *cobra.Command, h *host.Host, name string) (*tenon.Tool, error) {
	snapshot, problems, err := h.Tools(cmd.Context())
	if err != nil {
		return nil, err
	}
	t, err := findTool(snapshot, name)
	if err == nil {
		return t, nil
	}
	// The tool may be left out, or its server not be there: its rules are.
	for key, e := range h.Config().Tools {
		if e = e.WithDefaults(key); key == name || e.Server+"."+e.RemoteName == name {
			return &tenon.Tool{Server: e.Server, Remote: e.RemoteName, Name: key}, nil
		}
	}
	if w, ok := findWithheld(snapshot, name); ok {
		return &tenon.Tool{Server: w.Server, Remote: w.Remote}, nil
	}
	a.problems(problems)
	return nil, err
}

// agentOf is the agent whose rules are asked for; "" where none is named and there
// are several.
func agentOf(h *host.Host, name string) (string, error) {
	all := h.Config().AgentNames()
	if name == "" && len(all) > 1 && !slices.Contains(all, "default") {
		return "", nil
	}
	_, err := h.Config().Agent(name)
	if err == nil && name == "" {
		if name = "default"; len(all) == 1 {
			name = all[0]
		}
	}
	return name, err
}

// proposal is the file that policy test reads.
type proposal struct {
	Tool      string          `json:"tool"` // its exposed name, or SERVER.NAME
	Arguments json.RawMessage `json:"arguments"`
	Agent     string          `json:"agent"`
	State     string          `json:"state"`
	Principal tenon.Principal `json:"principal"`
}

func newPolicyTest(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "test CALL.json",
		Short: "Show what the rules decide about a call, without making it",
		Long: "Shows what the rules decide about a call: allow, ask or deny, and why. CALL.json has {\"tool\": NAME, \"arguments\":\n" +
			"{...}, \"agent\": NAME, \"state\": NAME, \"principal\": NAME}, of which tool is required; - is stdin. Nothing is called. The status is 0\n" +
			"for allow, 8 for ask and 7 for deny.",
		Example: "  tenon policy test call.json\n  echo '{\"tool\": \"transfer\", \"arguments\": {\"amount\": 2000}}' | tenon policy test -",
		Args:    args(1, 1, "the call"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p, err := a.readProposal(args[0])
			if err != nil {
				return err
			}
			h, err := a.open(cmd.Context(), opening{connect: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			t, err := a.ruledTool(cmd, h, p.Tool)
			if err != nil {
				return err
			}
			agent, err := agentOf(h, p.Agent)
			if err != nil {
				return err
			}
			o, err := h.Judge(cmd.Context(), host.Proposal{Tool: t.Name, Arguments: p.Arguments, Agent: agent, State: p.State, Principal: p.Principal})
			if err != nil {
				return err
			}
			if a.isJSON() {
				err = a.printJSON(map[string]any{"server": t.Server, "remote_name": t.Remote, "verdict": o.Verdict, "reason": o.Reason, "policy": h.Policy()})
			} else {
				err = a.printText(strings.TrimSuffix(string(o.Verdict)+": "+safeLine(o.Reason), ": "))
			}
			switch {
			case err != nil:
			case o.Verdict == tenon.Ask:
				err = reported{tenon.Errorf(tenon.CodeWaiting, "the call would ask")}
			case o.Verdict == tenon.Deny:
				err = reported{tenon.Errorf(tenon.CodeDenied, "the call would be denied")}
			}
			return err
		},
	}
}

// maxProposal bounds the file of a call in bytes.
const maxProposal = 16 << 20

func (a *app) readProposal(file string) (proposal, error) {
	var p proposal
	var b []byte
	var err error
	if file == "-" {
		b, err = io.ReadAll(io.LimitReader(a.lines, maxProposal))
	} else if b, err = readUpTo(file, maxProposal); err != nil {
		return p, tenon.Errorf(tenon.CodeInvalid, "the call cannot be read: %w", err)
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(&p)
	}
	if err == nil && p.Tool == "" {
		err = tenon.Errorf(tenon.CodeInvalid, "it names no tool")
	}
	if err != nil {
		return p, tenon.Errorf(tenon.CodeInvalid, "%s is no call: %w; write {\"tool\": NAME, \"arguments\": {...}}", file, err)
	}
	return p, nil
}
