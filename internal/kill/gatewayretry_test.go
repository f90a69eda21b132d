package kill

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
)

// modernCall is a stateless call of a client that can answer forms.
const modernCall = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask_form","arguments":{"message":"round %d"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}%s}}`

// TestGW_18_KilledBeforeRetry kills tenon gateway between an input_required result and the client's retry. A server of
// the modern era gets the answer with the retry, once. A call to a legacy server ended with the process, so the
// client's retry ends as unknown, and the call is not sent again.
func TestGW_18_KilledBeforeRetry(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	for _, era := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(era, func(t *testing.T) {
			f := newField(t)
			f.WriteFile(t, "tenon.yaml", fmt.Sprintf(`version: 1
servers: {t: {command: %q, args: [testserver, --stdio, --effects, %q], protocol: %s}}
tools: {ask_form: {server: t, policy: {approval: never}}}
`, f.Tenon, f.effects, era))
			for n := range gatewayKills(t, 2) {
				g := f.gateway(t)
				g.send(t, fmt.Sprintf(modernCall, 2, n, ""))
				var asked struct {
					Result struct {
						ResultType    string                     `json:"resultType"`
						RequestState  string                     `json:"requestState"`
						InputRequests map[string]json.RawMessage `json:"inputRequests"`
					}
				}
				first := g.answer(t, 2)
				if err := json.Unmarshal([]byte(first), &asked); err != nil || asked.Result.ResultType != "input_required" {
					t.Fatalf("round %d: %s", n, first)
				}
				killGroup(g.cmd)
				_ = g.cmd.Wait()
				responses := map[string]any{}
				for key := range asked.Result.InputRequests {
					responses[key] = map[string]any{"action": "accept", "content": map[string]any{"name": "Ann"}}
				}
				raw, err := json.Marshal(responses)
				if err != nil {
					t.Fatal(err)
				}
				g = f.gateway(t)
				g.send(t, fmt.Sprintf(modernCall, 3, n, fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, asked.Result.RequestState, raw)))
				got := g.answer(t, 3)
				killGroup(g.cmd)
				_ = g.cmd.Wait()
				run, _, _ := strings.Cut(asked.Result.RequestState, "/")
				calls := f.effectsOf(t, run)["1.0"]
				if era == "2026-07-28" && (!strings.Contains(got, "Ann") || calls != 2) {
					t.Errorf("round %d: %s after %d calls, want the answer after 2", n, got, calls)
				}
				if era == "2025-11-25" && (!strings.Contains(got, "unknown") || calls != 1) {
					t.Errorf("round %d: %s after %d calls, want unknown after 1", n, got, calls)
				}
				if left := clitest.Decode[[]approval](t, f.OK(t, "approvals", "list", "-c", "tenon.yaml", "-o", "json")); len(left) != 0 {
					t.Errorf("round %d: %+v wait", n, left)
				}
			}
		})
	}
}
