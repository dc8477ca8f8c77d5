// A minimal core for an SPU. It runs a loop of 13 instructions at EL0, one per cycle, and reports to the SPU what a
// real core must report, with the same timing.

module core (
    input wire clk,
    input wire rst,

    // Sampling point: an operation passes in each cycle. One cycle later the SPU reports whether it is sampled.
    output wire sampling_valid,
    input  wire sampling_sampled,

    // Sampled operation in flight.
    output wire in_flight_issued,
    output wire in_flight_completed,
    output wire in_flight_translating,

    // End of the sampled operation.
    output wire        finish_valid,
    output wire [55:0] pc,
    output wire        load,
    output wire        branch,
    output wire        taken,
    output wire [55:0] target,
    output wire [63:0] address
);
    localparam [55:0] START = 56'h400000;
    localparam [3:0] LAST = 12;

    // Instruction 5 is a load. The last instruction is a branch to the first. In one iteration of 16 it is not taken.
    reg [3:0] number = 0;
    reg [31:0] iteration = 0;
    assign sampling_valid = !rst;
    always @(posedge clk)
        if (rst) begin
            number <= 0;
            iteration <= 0;
        end else if (number == LAST) begin
            number <= 0;
            iteration <= iteration + 1;
        end else number <= number + 1;

    // sampling_sampled refers to the operation that passed one cycle ago.
    reg [3:0] passed_number = 0;
    reg [31:0] passed_iteration = 0;
    always @(posedge clk) begin
        passed_number <= number;
        passed_iteration <= iteration;
    end

    // A sampled operation is in flight for several cycles. A load is issued later, is translated, and takes longer.
    reg [3:0] sampled_number = 0;
    reg [31:0] sampled_iteration = 0;
    reg [5:0] age = 0;
    reg in_flight = 0;
    wire is_load = sampled_number == 5;
    wire [5:0] issue_age = is_load ? 4 : 1;
    wire [5:0] finish_age = is_load ? 20 + {2'b00, sampled_iteration[3:0]} : 6;
    always @(posedge clk)
        if (rst) in_flight <= 0;
        else if (sampling_sampled) begin
            sampled_number <= passed_number;
            sampled_iteration <= passed_iteration;
            in_flight <= 1;
            age <= 1;
        end else if (in_flight) begin
            age <= age + 1;
            if (age == finish_age) in_flight <= 0;
        end

    assign in_flight_issued = in_flight && age == issue_age;
    assign in_flight_translating = in_flight && is_load && age > issue_age && age <= issue_age + 3;
    assign in_flight_completed = in_flight && age == finish_age;
    assign finish_valid = in_flight && age == finish_age;
    assign pc = START + {50'd0, sampled_number, 2'd0};
    assign load = is_load;
    assign branch = sampled_number == LAST;
    assign taken = sampled_iteration[3:0] != 15;
    assign target = taken ? START : pc + 4;
    assign address = 64'h7f0000 + {26'd0, sampled_iteration, 6'd0};
endmodule
