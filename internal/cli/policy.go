package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/policy"
)

func newPolicy(a *app) *cobra.Command {
	cmd := group("policy", "Rules for tools: explain, test", "policies")
	cmd.AddCommand(newPolicyExplain(a), newPolicyTest(a))
	return cmd
}

func newPolicyExplain(a *app) *cobra.Command {
	var agent, endpoint, principal string
	cmd := &cobra.Command{
		Use:   "explain TOOL [--agent NAME] | --endpoint NAME [--principal NAME]",
		Short: "Show the rules for a tool, or what a client may call",
		Long: "Shows each value of the rules for a tool, with the file, line and layer that sets it. In a layer\n" +
			"the most specific block wins, value by value: tools.NAME.policy, then agents.NAME.policy,\n" +
			"policy.groups.NAME, servers.NAME.policy, policy.defaults. Conditions of policy.rules override\n" +
			"approval. If layers differ, the strictest value wins. The rows 'verdict' show the decision of\n" +
			"each layer about a call without arguments, and which verdict wins. TOOL is the name that a model\n" +
			"sees, or SERVER.NAME.\n\n" +
			"With --endpoint it lists the tools, prompts and resources that a client of the gateway sees there,\n" +
			"and the verdict about a call. A rule that depends on the arguments asks there, because they are\n" +
			"not known.",
		Example: "  tenon policy explain get_weather\n  tenon policy explain bank.transfer --agent clerk -o json\n" +
			"  tenon policy explain --endpoint coding --principal anna\n  tenon policy explain --endpoint all",
		Args: func(cmd *cobra.Command, list []string) error {
			if endpoint != "" {
				return args(0, 0, "with --endpoint")(cmd, list)
			}
			return args(1, 1, "the tool")(cmd, list)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if endpoint != "" {
				return a.explainClient(cmd.Context(), endpoint, principal)
			}
			if principal != "" {
				return tenon.Errorf(tenon.CodeInvalid, "--principal needs --endpoint: it names whose client is "+
					"explained")
			}
			h, err := a.open(cmd.Context(), opening{connect: true, looks: true})
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
			list := h.Service().Info().Config.Explain(t.Server, t.Remote, agent)
			verdicts := h.Approvals().Rules().Verdicts(t, agent)
			if a.isJSON() {
				return a.printJSON(map[string]any{"server": t.Server, "remote_name": t.Remote, "name": t.Name,
					"agent": agent, "values": list, "verdicts": verdicts})
			}
			err = printListAs(a, append(list, verdictRows(verdicts)...), []string{"key", "value", "said in", "at",
				"layer"}, func(r config.Ruled) []string {
				return []string{r.Key, r.Value, r.From, r.Origin, r.Layer}
			}, a.values)
			if note := h.Approvals().Rules().Unused(t, agent); err == nil && note != "" {
				a.hint("%s", note)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "`NAME` of the agent that uses the tool (default: default, or the "+
		"only one)")
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "show what a client sees and may call at the entry `NAME` of "+
		"gateway.endpoints, or at the one with all tools: all")
	cmd.Flags().StringVar(&endpoint, "client", "", "the `NAME` of --endpoint in earlier releases")
	cmd.Flags().StringVar(&principal, "principal", "", "`NAME` of the client's principal (default: the local user)")
	return cmd
}

// allEndpoint names the endpoint with all tools, unless an entry of gateway.endpoints has the name.
const allEndpoint = "all"

// explainClient lists what a client of a principal sees at an endpoint.
func (a *app) explainClient(ctx context.Context, endpoint, principal string) (err error) {
	h, err := a.open(ctx, opening{connect: true, looks: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	endpoint = strings.TrimPrefix(strings.TrimPrefix(endpoint, "/mcp"), "/")
	if _, ok := h.Service().Info().Config.Gateway.Endpoints[endpoint]; !ok && endpoint == allEndpoint {
		endpoint = ""
	}
	if err := checkEndpoint(h.Service().Info().Config, endpoint); err != nil {
		return err
	}
	list, err := gateway.Explain(ctx, h, endpoint, tenon.Principal(principal))
	if err != nil {
		return err
	}
	return printList(a, list, []string{"kind", "name", "server", "listed", "verdict", "reason"},
		func(s gateway.Seen) []string {
			listed := "yes"
			if !s.Listed {
				listed = "no"
			}
			return []string{s.Kind, safeLine(s.Name), s.Server, listed, string(s.Verdict), safeLine(s.Reason)}
		})
}

// verdictRows returns a row for the verdict of each layer.
func verdictRows(list []policy.LayerVerdict) []config.Ruled {
	var rows []config.Ruled
	for _, v := range list {
		r := config.Ruled{Key: "verdict", Value: cmp.Or(string(v.Verdict), "no opinion"),
			Layer: cmp.Or(v.Layer, "default")}
		if v.Reason != "" {
			r.Value += ": " + safeLine(v.Reason)
		}
		if v.Wins {
			r.Origin = "wins"
		}
		rows = append(rows, r)
	}
	return rows
}

// ruledTool finds a tool by its name or as SERVER.NAME.
func (a *app) ruledTool(cmd *cobra.Command, h *host.Host, name string) (*tenon.Tool, error) {
	snapshot, problems, err := h.Tools().Snapshot(cmd.Context())
	if err != nil {
		return nil, err
	}
	t, err := findTool(snapshot, name)
	if err == nil {
		return t, nil
	}
	// The rules of a tool can be shown even if the tool is filtered out or its server cannot be reached.
	for key, e := range h.Service().Info().Config.Tools {
		if e = e.WithDefaults(key); key == name || e.Server+"."+e.RemoteName == name {
			return &tenon.Tool{Server: e.Server, Remote: e.RemoteName, Name: key}, nil
		}
	}
	if w, ok := findWithheld(snapshot, name); ok {
		return &tenon.Tool{Server: w.Server, Remote: w.Remote}, nil
	}
	// The servers of an untrusted project are not asked for their tools, but they have rules.
	for _, p := range problems {
		remote, ok := strings.CutPrefix(name, p.Server+".")
		if ok && p.Server != "" && remote != "" && tenon.ErrorCode(p.Err) == tenon.CodeWaiting {
			a.problems([]host.Problem{p})
			return &tenon.Tool{Server: p.Server, Remote: remote}, nil
		}
	}
	a.problems(problems)
	return nil, err
}

// agentOf returns the agent whose rules apply. It is empty if no agent is named and there are several.
func agentOf(h *host.Host, name string) (string, error) {
	all := h.Service().Info().Config.AgentNames()
	if name == "" && len(all) > 1 && !slices.Contains(all, "default") {
		return "", nil
	}
	_, err := h.Service().Info().Config.Agent(name)
	if err == nil && name == "" {
		name = "default"
		if len(all) == 1 {
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
		Short: "Show the verdict about a call without making it",
		Long: "Shows the verdict of the rules about a call (allow, ask or deny) and the reason. Nothing is\n" +
			"called. CALL.json is {\"tool\": NAME, \"arguments\": {...}, \"agent\": NAME, \"state\": NAME,\n" +
			"\"principal\": NAME}; only tool is required. - is stdin. The exit status is 0 for allow, 8 for\n" +
			"ask and 7 for deny.",
		Example: "  tenon policy test call.json\n  echo '{\"tool\": \"transfer\", \"arguments\": {\"amount\": " +
			"2000}}' | tenon policy test -",
		Args: args(1, 1, "the call"),
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
			o, err := h.Approvals().Rules().Judge(cmd.Context(), host.Proposal{Tool: t.Name, Arguments: p.Arguments,
				Agent: agent, State: p.State, Principal: p.Principal})
			if err != nil {
				return err
			}
			if a.isJSON() {
				err = a.printJSON(map[string]any{"server": t.Server, "remote_name": t.Remote, "verdict": o.Verdict,
					"reason": o.Reason, "policy": h.Approvals().Rules().Digest(), "layer": cmp.Or(o.Layer, "default"),
					"verdicts": o.Verdicts})
			} else {
				err = a.printText(strings.TrimSuffix(string(o.Verdict)+": "+safeLine(o.Reason), ": "))
			}
			if len(o.Verdicts) > 1 && !a.isJSON() {
				for _, r := range verdictRows(o.Verdicts) {
					a.hint("%s: %s%s", r.Layer, r.Value, map[bool]string{true: " (wins)"}[r.Origin != ""])
				}
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
		err = exactjson.Decode(b, &p)
	}
	if err == nil && p.Tool == "" {
		err = tenon.Errorf(tenon.CodeInvalid, "it names no tool")
	}
	if err != nil {
		return p, tenon.Errorf(tenon.CodeInvalid, "%s is no call: %w; write {\"tool\": NAME, \"arguments\": {...}}",
			file, err)
	}
	return p, nil
}
