// The SPU of `neoverse_n1` with a core, a memory and a driver. The testbench writes the Profiling Buffer to buffer.bin.

`include "spurtle_neoverse_n1.vh"

module testbench;
    reg clk = 0;
    reg rst = 1;
    always #5 clk = !clk;

    // Core.
    wire sampling_valid, sampling_sampled, issued, completed, translating, finish_valid;
    wire load, branch, taken;
    wire [55:0] pc, target;
    wire [63:0] address;
    core core (
        .clk(clk), .rst(rst),
        .sampling_valid(sampling_valid), .sampling_sampled(sampling_sampled),
        .in_flight_issued(issued), .in_flight_completed(completed), .in_flight_translating(translating),
        .finish_valid(finish_valid), .pc(pc), .load(load), .branch(branch), .taken(taken),
        .target(target), .address(address)
    );

    // Operation at its end. Bits that are not assigned are zero: these facts are false.
    reg [289:0] operation;
    always @(*) begin
        operation = 0;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_PC] = pc;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_FACTS_RETIRED] = 1;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_FACTS_LOAD] = load;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_FACTS_VA_VALID] = load;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_VA] = address;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_FACTS_BRANCH] = branch;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_FACTS_CONDITIONAL] = branch;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_FACTS_TAKEN] = !branch || taken;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_TARGET_ADDRESS] = target;
        operation[`SPURTLE_NEOVERSE_N1_FINISH_OPERATION_TARGET_NS] = 1;
    end

    // System registers and the system counter.
    reg sysreg_valid = 0, sysreg_write = 0;
    reg [13:0] sysreg_encoding = 0;
    reg [63:0] sysreg_wdata = 0;
    wire [63:0] sysreg_rdata;
    wire [1:0] sysreg_outcome;
    reg [1:0] el = 1;
    reg [63:0] count = 0;
    always @(posedge clk) count <= count + 1;

    // Memory of the Profiling Buffer. It accepts a beat in each cycle, and completes it in the next.
    localparam [63:0] BASE = 64'hffff000010000000;
    localparam [63:0] SIZE = 4096;
    reg [7:0] memory [0:4095];
    wire [136:0] beat;
    wire beat_valid;
    reg done = 0;
    wire [63:0] beat_address = beat[`SPURTLE_NEOVERSE_N1_WRITE_BEAT_PAYLOAD_ADDRESS];
    wire [63:0] beat_data = beat[`SPURTLE_NEOVERSE_N1_WRITE_BEAT_PAYLOAD_DATA];
    wire [7:0] beat_strobe = beat[`SPURTLE_NEOVERSE_N1_WRITE_BEAT_PAYLOAD_STROBE];
    integer lane;
    always @(posedge clk) begin
        done <= beat_valid && beat[`SPURTLE_NEOVERSE_N1_WRITE_BEAT_PAYLOAD_LAST];
        if (beat_valid) begin
            if (beat_address < BASE || beat_address >= BASE + SIZE) begin
                $display("write outside of the buffer, at %h", beat_address);
                $fatal;
            end
            for (lane = 0; lane < 8; lane = lane + 1)
                if (beat_strobe[lane]) memory[beat_address[11:0] + lane[11:0]] <= beat_data[8 * lane +: 8];
        end
    end

    // SPU.
    reg drain_request = 0;
    wire drain_done, pmbirq, collision;
    spurtle_neoverse_n1 spu (
        .clk(clk), .rst(rst),
        .sampling__valid(sampling_valid), .sampling__sampled(sampling_sampled),
        .in_flight__issued(issued), .in_flight__completed(completed), .in_flight__translating(translating),
        .finish__valid(finish_valid), .finish__vanished(1'b0), .finish__operation(operation),
        .pe__el(el), .pe__ns(1'b1), .pe__debug(1'b0), .pe__aarch32(1'b0),
        .pe__contextidr_el1(32'd42), .pe__contextidr_el2(32'd0),
        .pe__mdcr_el2_e2pb(2'b11), .pe__mdcr_el2_tpms(1'b0), .pe__mdcr_el3_nspb(2'b11),
        .pe__hcr_el2_e2h(1'b0), .pe__hcr_el2_tge(1'b0), .pe__cntvoff_el2(64'd0),
        .pe__physical_count(count), .pe__count_enabled(1'b1),
        .sysreg__valid(sysreg_valid), .sysreg__write(sysreg_write),
        .sysreg__op1(sysreg_encoding[13:11]), .sysreg__crn(sysreg_encoding[10:7]),
        .sysreg__crm(sysreg_encoding[6:3]), .sysreg__op2(sysreg_encoding[2:0]),
        .sysreg__wdata(sysreg_wdata), .sysreg__rdata(sysreg_rdata), .sysreg__outcome(sysreg_outcome),
        .drain__request(drain_request), .drain__done(drain_done),
        .write__beat__payload(beat), .write__beat__valid(beat_valid), .write__beat__ready(1'b1),
        .write__done(done), .write__fault(14'd0), .write__abort(1'b0),
        .pmbirq(pmbirq), .pmu__sample_collision(collision),
        .pmu__sample_pop(), .pmu__sample_feed(), .pmu__sample_feed_br(), .pmu__sample_feed_ld(),
        .pmu__sample_feed_st(), .pmu__sample_feed_op(), .pmu__sample_feed_event(), .pmu__sample_feed_lat(),
        .pmu__sample_filtrate(), .pmu__sample_buffer_full()
    );

    // Driver, as in a kernel. The result of an access is valid SYSREG_LATENCY cycles after the access.
    reg [63:0] value;
    task access(input [13:0] encoding, input write, input [63:0] wdata);
        begin
            @(negedge clk);
            sysreg_valid = 1;
            sysreg_write = write;
            sysreg_encoding = encoding;
            sysreg_wdata = wdata;
            @(negedge clk) sysreg_valid = 0;
            repeat (`SPURTLE_NEOVERSE_N1_SYSREG_LATENCY - 1) @(negedge clk);
            value = sysreg_rdata;
            if (sysreg_outcome != `SPURTLE_NEOVERSE_N1_SYSREG_OUTCOME_IS_VALUE) begin
                $display("access to register %h failed: outcome %0d", encoding, sysreg_outcome);
                $fatal;
            end
        end
    endtask
    task psb_csync;
        begin
            @(negedge clk) drain_request = 1;
            while (!drain_done) @(negedge clk);
            @(negedge clk) drain_request = 0;
        end
    endtask

    reg [63:0] field;
    integer file, collisions = 0;
    reg [63:0] offset;
    always @(posedge clk) if (!rst && collision) collisions = collisions + 1;

    initial begin
        repeat (4) @(negedge clk);
        rst = 0;

        // Set up the buffer, an interval of 257 operations and what is collected, then continue at EL0.
        access(`SPURTLE_NEOVERSE_N1_PMBPTR_EL1, 1, BASE);
        field = BASE + SIZE;
        field[`SPURTLE_NEOVERSE_N1_PMBLIMITR_EL1_E] = 1;
        access(`SPURTLE_NEOVERSE_N1_PMBLIMITR_EL1, 1, field);
        field = 0;
        field[`SPURTLE_NEOVERSE_N1_PMSIRR_EL1_INTERVAL] = 1;
        access(`SPURTLE_NEOVERSE_N1_PMSIRR_EL1, 1, field);
        access(`SPURTLE_NEOVERSE_N1_PMSICR_EL1, 1, 0);
        field = 0;
        field[`SPURTLE_NEOVERSE_N1_PMSCR_EL1_E0SPE] = 1;
        field[`SPURTLE_NEOVERSE_N1_PMSCR_EL1_CX] = 1;
        field[`SPURTLE_NEOVERSE_N1_PMSCR_EL1_TS] = 1;
        access(`SPURTLE_NEOVERSE_N1_PMSCR_EL1, 1, field);
        el = 0;

        // Wait until the buffer is full, then handle the interrupt.
        while (!pmbirq) @(negedge clk);
        el = 1;
        repeat (40) @(negedge clk);  // operations in flight finish
        psb_csync;
        access(`SPURTLE_NEOVERSE_N1_PMBSR_EL1, 0, 0);
        if (!value[`SPURTLE_NEOVERSE_N1_PMBSR_EL1_S] || value[`SPURTLE_NEOVERSE_N1_PMBSR_EL1_DL]) $fatal;
        access(`SPURTLE_NEOVERSE_N1_PMSCR_EL1, 1, 0);
        access(`SPURTLE_NEOVERSE_N1_PMBPTR_EL1, 0, 0);
        file = $fopen("buffer.bin", "wb");
        for (offset = 0; offset < value - BASE; offset = offset + 1) $fwrite(file, "%c", memory[offset[11:0]]);
        $fclose(file);
        $display("%0d records, %0d collisions, in buffer.bin", (value - BASE) / 64, collisions);
        $finish;
    end
endmodule
