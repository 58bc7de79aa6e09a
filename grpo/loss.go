package grpo

// LossKind names a token loss.
type LossKind uint8

// The token losses.
const (
	CrossEntropy   LossKind = iota // −log p, the advantage is not used
	PolicyGradient                 // clipped policy gradient
)

// Loss is the loss of one token, before its weight.
type Loss struct {
	Kind     LossKind
	ClipLow  float64 // the ratio's lower limit is 1−ClipLow; 0: no clipping on this side
	ClipHigh float64 // the ratio's upper limit is 1+ClipHigh; 0: no clipping on this side
	DualClip float64 // largest ratio that counts where the advantage is negative; 0: off
	KL       float64 // coefficient of the k3 estimator to the reference policy
	Entropy  float64 // coefficient of the entropy bonus (subtracted from the loss)
	MaxDrift float64 // truncation of the importance weight between sampler and trainer; 0: off
}
