package config

import (
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
)

// agentModel checks that an agent's model supports the agent's settings, tool choice and mode.
func (k *checker) agentModel(p string, a agent.Config) {
	name := a.Model
	if all := k.c.ModelNames(); name == "" && len(all) > 0 {
		name = all[0]
	}
	m, known := k.c.Models[name]
	if known {
		m = k.c.KeylessModel(name)
	}
	if s := a.Settings.Sampling(); s != nil {
		if err := m.CheckSampling(s); err != nil { // the model is unknown: only check the values
			k.bad(p+".settings", "", "%s", err.Error())
		}
	}
	k.providerTokens(p + ".provider_tools")
	if err := m.CheckTools(a.ProviderTools); err != nil {
		k.bad(p+".provider_tools", "", "%s", err.Error())
	}
	react := a.Mode == agent.ModeReact || a.Mode == "" && m.ToolMode == model.ToolsReact
	switch {
	case react && len(a.Settings.Stop) > 0:
		k.bad(p+".settings.stop", "leave it out", "it would cut off the steps of mode react")
	case react && len(m.Stop) > 0:
		k.bad(p+".mode", "use mode native, or a model without stop", "models.%s.stop would cut off the steps of mode "+
			"react", name)
	}
	if known && tenon.ParseChoice(a.ToolChoice).Forces() && m.With(a.Settings.Sampling()).Thinks() {
		k.note(p+".tool_choice", "leave out `tool_choice`, or the model's `reasoning`", "Anthropic's models do not "+
			"think when they must call a tool: the requests with this choice are sent without reasoning")
	}
}
