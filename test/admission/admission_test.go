package admission

import "testing"

func TestOnAnAPIServer(t *testing.T) {
	w := newWorld(t)
	t.Run("own node", w.ownNode)
	t.Run("quota", w.quota)
	t.Run("admin access", w.adminAccess)
	t.Run("webhook", w.webhook) // last: it ends the webhook
}
