"""``dgl.data``: the data sets of gnnlab, and the base classes and data sets that only DGL has."""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.data need no entry.
_MODULES = {
    "gnnlab.compat.data.adapter": "AsGraphPredDataset AsLinkPredDataset AsNodePredDataset",
    "gnnlab.compat.data.by_name": "RedditDataset load_data register_data_args",
    "gnnlab.compat.data.citation_graph": "CitationGraphDataset CiteseerGraphDataset "
    "CoraGraphDataset PubmedGraphDataset",
    "gnnlab.compat.data.csv_dataset": "CSVDataset",
    "gnnlab.compat.data.dgl_dataset": "DGLBuiltinDataset DGLDataset",
    "gnnlab.compat.data.generated": """
        KarateClub=KarateClubDataset KarateClubDataset MiniGCDataset
        SBMMixture=SBMMixtureDataset SBMMixtureDataset
    """,
    "gnnlab.compat.data.gin": "GINDataset",
    "gnnlab.compat.data.published": """
        AmazonCoBuyComputerDataset AmazonCoBuyPhotoDataset
        BitcoinOTC=BitcoinOTCDataset BitcoinOTCDataset CoauthorCSDataset CoauthorPhysicsDataset
        CoraFull=CoraFullDataset CoraFullDataset FB15k237Dataset FB15kDataset FraudAmazonDataset
        FraudDataset FraudYelpDataset GDELT=GDELTDataset GDELTDataset PPIDataset
        QM7b=QM7bDataset QM7bDataset SST=SSTDataset SSTDataset WN18Dataset WikiCSDataset
    """,
    "gnnlab.compat.data.rdf": "AIFBDataset AMDataset BGSDataset MUTAGDataset",
    "gnnlab.compat.data.tu": "LegacyTUDataset TUDataset",
    "gnnlab.compat.data.utils": """
        Subset add_nodepred_split check_sha1 download extract_archive get_download_dir load_graphs
        load_info load_tensors makedirs save_graphs save_info save_tensors split_dataset
    """,
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.data", _MODULES)
