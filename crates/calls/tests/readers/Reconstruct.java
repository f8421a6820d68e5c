import kieker.analysis.AnalysisController;
import kieker.analysis.plugin.reader.filesystem.FSReader;
import kieker.analysis.plugin.filter.forward.CountingFilter;
import kieker.common.configuration.Configuration;
import kieker.tools.trace.analysis.filter.AbstractTraceAnalysisFilter;
import kieker.tools.trace.analysis.filter.executionRecordTransformation.ExecutionRecordTransformationFilter;
import kieker.tools.trace.analysis.filter.traceReconstruction.TraceReconstructionFilter;
import kieker.tools.trace.analysis.systemModel.repository.SystemModelRepository;

/** Reads a log of Kieker's and counts its records, valid traces and invalid ones. */
public final class Reconstruct {
    public static void main(final String[] arguments) throws Exception {
        final AnalysisController controller = new AnalysisController();
        final Configuration input = new Configuration();
        input.setProperty(FSReader.CONFIG_PROPERTY_NAME_INPUTDIRS, arguments[0]);
        final FSReader reader = new FSReader(input, controller);
        final SystemModelRepository model =
            new SystemModelRepository(new Configuration(), controller);
        final ExecutionRecordTransformationFilter executions =
            new ExecutionRecordTransformationFilter(new Configuration(), controller);
        final Configuration settings = new Configuration();
        settings.setProperty(
            TraceReconstructionFilter.CONFIG_PROPERTY_NAME_IGNORE_INVALID_TRACES, "true");
        final TraceReconstructionFilter traces =
            new TraceReconstructionFilter(settings, controller);
        final CountingFilter records = new CountingFilter(new Configuration(), controller);
        final String port = AbstractTraceAnalysisFilter.REPOSITORY_PORT_NAME_SYSTEM_MODEL;
        controller.connect(executions, port, model);
        controller.connect(traces, port, model);
        controller.connect(
            reader, FSReader.OUTPUT_PORT_NAME_RECORDS,
            executions, ExecutionRecordTransformationFilter.INPUT_PORT_NAME_RECORDS);
        controller.connect(
            executions, ExecutionRecordTransformationFilter.OUTPUT_PORT_NAME_EXECUTIONS,
            traces, TraceReconstructionFilter.INPUT_PORT_NAME_EXECUTIONS);
        controller.connect(
            executions, ExecutionRecordTransformationFilter.OUTPUT_PORT_NAME_EXECUTIONS,
            records, CountingFilter.INPUT_PORT_NAME_EVENTS);
        controller.run();
        System.out.println(
            "counted " + records.getMessageCount() + " " + traces.getSuccessCount()
            + " " + traces.getErrorCount());
    }
}
