"""Clock gating of the compiled SPU: which registers are gated, on a small module in the form that Yosys writes."""

import pytest

from spurtle_sim.cosim.gating import gate

MODULE = """\
module small(sampling__valid, write, clk, rst, seen);
  input sampling__valid;
  input [7:0] write;
  input clk;
  input rst;
  output seen;
  wire _0_;
  reg [7:0] counter = 8'h00;
  reg [7:0] stored = 8'h00;
  reg [7:0] copy = 8'h00;
  reg interval_counter_selected__0 = 1'h0;
  always @(edge clk)
    counter <= counter + sampling__valid;
  always @(edge clk)
    interval_counter_selected__0 <= counter == 8'hff;
  assign _0_ = rst ? 1'h0 : interval_counter_selected__0;
  always @(edge clk)
    stored <= _0_ ? write : stored;
  always @(edge clk)
    copy <= counter ^ stored;
  assign seen = stored[0];
endmodule
"""


def test_registers_that_depend_on_frequent_inputs_are_not_gated() -> None:
    gated = gate(MODULE, (0, 1))
    assert gated.gated == {"stored"}
    assert gated.inputs == ("rst", "write")
    assert gated.text.count("edge gated_clk)\n    stored <=") == 1
    assert gated.text.count("edge clk)") == 3
    compared = "assign gated_watched = 1'h0 | interval_counter_selected__0 != gated_seen_1;"
    assert compared in gated.text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("  assign _0_ = missing;", "nothing drives missing"),
        ("  always @(edge clk) begin\n    a <= 1;\n    b <= 1;\n  end;", "each always block must store one register"),
    ],
)
def test_other_forms_are_refused(line: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        gate(MODULE.replace("endmodule", f"{line}\nendmodule"), (0, 1))
