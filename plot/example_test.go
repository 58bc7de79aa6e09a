package plot_test

import (
	"fmt"
	"strings"

	"skillmaster/plot"
)

func ExampleChart() {
	chart := plot.Chart{Title: "Success <while> training", Series: []plot.Series{{Name: "all", X: []float64{1, 2, 3}, Y: []float64{0.2, 0.5, 0.9}}}}
	svg := chart.SVG()
	fmt.Println(strings.HasPrefix(svg, "<svg"), strings.Contains(svg, "&lt;while&gt;"))
	fmt.Println(plot.Ticks(0, 0.9, 3), plot.Short(0.00123456))
	// Output:
	// true true
	// [0 0.5] 0.0012
}
