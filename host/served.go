package host

import "github.com/tenonhq/tenon"

func (h callersHandle) Working(who tenon.Principal) (own, all int) { return h.host.engine.AtWork(who) }

func (h callersHandle) Owner(run string) (who tenon.Principal, ok bool) {
	return h.host.engine.WorksFor(run)
}

func (h callersHandle) Mask(b []byte) []byte { return h.host.redactor.JSON(b) }

func (h callersHandle) RegisterSecret(s tenon.Secret) { h.host.redactor.Add(s) }
